"""Stacks on `reliable` in the simulator, over networks that lose, duplicate and reorder."""

from __future__ import annotations

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.core.message import origin_of
from flexgroup.properties import verdict
from flexgroup.properties.catalogue import check
from flexgroup.trace.collector import Collector
from flexgroup.trace.history import History
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, SimulationResult, run_scenario

LOSSY = "lan:loss=0.05,duplication=0.05,fifo=no"

ALWAYS = ["integrity", "validity", "agreement"]
TOTAL = ["acyclic order", "prefix order"]
PROMISES = {
    "reliable": ALWAYS,
    "reliable fifo": [*ALWAYS, "fifo order"],
    "reliable causal": [*ALWAYS, "causal order", "fifo order"],
    "RELIABLE CAUSAL": [*ALWAYS, "causal order"],
    "reliable causal-rst": [*ALWAYS, "causal order", "fifo order"],
    "reliable causal-ses": [*ALWAYS, "causal order", "fifo order"],
    "reliable causal-isis": [*ALWAYS, "causal order", "fifo order"],
    "reliable skeen": [*ALWAYS, *TOTAL],
    "reliable fifo dcc": [*ALWAYS, *TOTAL],
}


def simulated(scenario: Scenario) -> tuple[SimulationResult, History]:
    collector = Collector()
    outcome = run_scenario(scenario, collector)
    return outcome, collector.history(outcome.run, scenario.processes, outcome.complete)


def assert_kept(history: History, promises: list[str]) -> None:
    for found in check(history, promises):
        assert found.outcome == verdict.Outcome.HOLDS, str(found)


@pytest.mark.parametrize("stack", PROMISES)
@pytest.mark.parametrize("seed", range(3))
def test_all_promises_are_kept_and_the_run_ends(stack: str, seed: int) -> None:
    """A run is complete only if no timer is set any more: the system fell silent."""
    scenario = Scenario(stack, 4, 6, "random:3", LOSSY, duration=0.6, seed=seed, rate=40.0)
    outcome, history = simulated(scenario)
    assert outcome.complete
    assert outcome.answered == outcome.multicasts > 50
    assert_kept(history, PROMISES[stack])


@pytest.mark.parametrize("stack", ["reliable", "reliable causal", "reliable causal-isis"])
@pytest.mark.parametrize("detection", ["20ms", None], ids=["detected", "undetected"])
@pytest.mark.parametrize("seed", range(4))
def test_a_crash_is_survived(stack: str, detection: str | None, seed: int) -> None:
    """If nobody detects it, messages for it are sent for ever; the others have all they need."""
    faults = Faults(crashes=("3@200ms",), detection=detection)
    scenario = Scenario(
        stack, 4, 6, "random:3", LOSSY, duration=0.4, seed=seed, rate=80.0, drain=3.0,
        faults=faults,
    )  # fmt: skip
    outcome, history = simulated(scenario)
    assert outcome.complete is (detection is not None)
    assert_kept(history, PROMISES[stack])


@pytest.mark.parametrize("stack", ["reliable fifo", "reliable causal-rst"])
@pytest.mark.parametrize("seed", range(4))
def test_with_one_set_of_destinations_a_sender_may_crash(stack: str, seed: int) -> None:
    """With several it is order or agreement: tests/scripts/reliable_fifo_subsets.txt."""
    faults = Faults(crashes=("3@200ms",), detection="20ms")
    scenario = Scenario(
        stack, 4, 6, "broadcast", LOSSY, duration=0.4, seed=seed, rate=80.0, drain=3.0,
        faults=faults,
    )  # fmt: skip
    outcome, history = simulated(scenario)
    assert outcome.complete
    assert_kept(history, PROMISES[stack])


def test_a_partition_that_drops_packets_is_survived() -> None:
    faults = Faults(partitions=("0,1|2,3@100ms-300ms!drop",))
    scenario = Scenario(
        "reliable causal", 4, 4, "broadcast", rate=100.0, duration=0.4, faults=faults
    )
    outcome, history = simulated(scenario)
    assert outcome.complete
    assert_kept(history, PROMISES["reliable causal"])


def test_under_load_null_messages_are_few() -> None:
    """Three processes that all multicast: acknowledgements ride on messages.

    What was sent just before the timer ran out is sent again: ten times a second and process.
    """
    scenario = Scenario("reliable", 3, 3, "broadcast", "lan", duration=0.5, rate=2000.0)
    outcome, history = simulated(scenario)
    sends = history.sends
    packets = [sends.packet[code] for code in sends.packet_code.tolist()]
    assert outcome.multicasts > 2500
    assert packets.count("Data") < 1.01 * 2 * outcome.multicasts
    assert packets.count("Null") < 0.05 * packets.count("Data")


def test_members_multicast_for_the_clients_of_a_closed_stack() -> None:
    _, history = simulated(Scenario("reliable", 3, 5, "broadcast", "lan", duration=0.01))
    assert {origin_of(m) for m in history.multicasts.message.tolist()} == {0, 1, 2}


def test_a_network_that_loses_packets_needs_it() -> None:
    with pytest.raises(UsageError, match="Causal needs reliable"):
        run_scenario(Scenario("causal", 3, 3, "broadcast", LOSSY))
