"""Members that multicast at planned times, and networks in which nothing waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.core.message import message_id
from flexgroup.trace.collector import Collector
from flexgroup.trace.history import History
from flexgroup.worlds.simulator.scenario import Scenario, SimulationResult, run_scenario

from .hosted import MS, World

ONE = Scenario("best-effort", 4, 0, "broadcast", "unit", casts="1@5ms")


def run(scenario: Scenario) -> tuple[SimulationResult, History]:
    collector = Collector()
    outcome = run_scenario(scenario, collector)
    return outcome, collector.history(outcome.run, scenario.processes, outcome.complete)


def test_a_member_multicasts_when_it_is_told_to() -> None:
    outcome, history = run(ONE)
    assert history.multicasts.process.tolist() == [1]
    assert history.multicasts.time.tolist() == [5 * MS]
    assert (outcome.multicasts, outcome.answered, outcome.deliveries) == (1, 1, 4)
    assert outcome.client_latency == pytest.approx(0.001), "no answer is sent to a member"


def test_everybody_multicasts_at_once_and_again() -> None:
    _, history = run(replace(ONE, casts="all@0s all@2ms"))
    assert sorted(history.multicasts.message.tolist()) == sorted(
        message_id(process, number) for process in range(4) for number in (0, 1)
    )


def test_members_and_clients_may_both_multicast() -> None:
    _, history = run(replace(ONE, clients=2, duration=0.01))
    assert set(history.multicasts.process.tolist()) == {1, 4, 5}


def test_runs_that_differ_in_their_casts_have_different_names() -> None:
    assert ONE.run != replace(ONE, casts="1@6ms").run


@pytest.mark.parametrize(
    ("casts", "complaint"),
    [
        ("1", "--cast '1': write PROCESS@TIME or all@TIME, for example 0@5ms"),
        ("4@0s", "--cast '4@0s': '4' is not a process; they are 0 to 3, or all"),
        ("1@soon", "'soon' is not a time"),
        ("", "0 clients cannot be simulated; give a number from 1 to"),
    ],
)
def test_what_cannot_be_planned_is_refused(casts: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint.replace("(", r"\(")):
        run_scenario(replace(ONE, casts=casts))


def test_millions_of_casts_are_refused() -> None:
    with pytest.raises(UsageError, match="1228800 planned multicasts are too many; plan up to"):
        run_scenario(replace(ONE, processes=4096, casts="all@0s " * 300))


def test_without_contention_only_copies_of_one_message_wait_for_each_other() -> None:
    """Three packets reach process 0 at once: in turn, or each as if it were alone."""

    def times(network: str) -> list[int]:
        world = World(4, network)
        for origin in (1, 2, 3):
            world.cast(0, origin, (0,))
        return [heard.time for heard in world.run()]

    assert times("neko") == [1_000_000, 1_100_000, 1_200_000]
    assert times("neko:contention=no") == [1_000_000] * 3
    world = World(4, "neko:contention=no")
    world.cast(0, 0, (1, 2, 3))
    assert [heard.time for heard in world.run()] == [1_000_000, 1_100_000, 1_200_000]


def test_without_contention_channels_are_fifo_all_the_same() -> None:
    """The fourth copy of the first message leaves after the second message's only one."""
    world = World(5, "neko:contention=no")
    world.cast(0, 0, (1, 2, 3, 4), "first")
    world.cast(100_000, 0, (4,), "second")
    assert [heard.text for heard in world.run() if heard.process == 4] == ["first", "second"]
