"""Clients: closed and open loops, who answers them, and what an outcome tells."""

from __future__ import annotations

import json
from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from flexgroup.core.errors import UsageError
from flexgroup.trace.collector import Collector
from flexgroup.trace.history import History
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.regions import one_way_ns
from flexgroup.worlds.simulator.scenario import (
    Scenario,
    SimulationResult,
    description,
    run_scenario,
)

MS = 1_000_000


def run(scenario: Scenario) -> tuple[SimulationResult, History]:
    collector = Collector()
    outcome = run_scenario(scenario, collector)
    return outcome, collector.history(outcome.run, scenario.processes, outcome.complete)


UNIT = Scenario("best-effort", 4, 3, "random:2", "unit", duration=0.05)


@pytest.mark.parametrize("stack", ["best-effort", "fifo", "skeen", "df", "dcc", "dcc/rv"])
def test_a_closed_loop_client_has_one_message_under_way(stack: str) -> None:
    """Its next multicast comes after the last answer to the one before, never earlier."""
    outcome, history = run(replace(UNIT, stack=stack, processes=6, clients=5, network="lan"))
    assert outcome.multicasts > 50
    multicasts, deliveries = history.multicasts, history.deliveries
    for client in range(6, 11):
        mine = multicasts.process == client
        cast_at = multicasts.time[mine]
        answered_by = [
            int(deliveries.time[deliveries.message == message].max())
            for message in multicasts.message[mine]
        ]
        assert len(cast_at) > 5
        assert all(np.asarray(answered_by[:-1]) < cast_at[1:])


def test_a_closed_loop_client_loses_no_time() -> None:
    """One delay to the destinations, one back: a message every two milliseconds."""
    outcome, history = run(replace(UNIT, clients=1))
    times = history.multicasts.time
    assert set(np.diff(times).tolist()) == {2 * MS}
    assert outcome.multicasts == 25
    assert outcome.client_latency == pytest.approx(0.002)


@pytest.mark.parametrize(
    ("stack", "milliseconds"),
    [
        # All answer, so the slowest counts: one delay, or two, and one back.
        ("best-effort", 2.0),
        ("fifo", 2.0),
        ("skeen", 3.0),
        # The last of four answers: it is reached after four steps; one back.
        ("df", 5.0),
        ("dcc", 5.0),
    ],
)
def test_who_answers(stack: str, milliseconds: float) -> None:
    outcome, _ = run(replace(UNIT, stack=stack, clients=1, workload="broadcast"))
    assert outcome.client_latency * 1000 == pytest.approx(milliseconds)


UNEVEN = "6:0=5ms 6:1=3ms 6:2=4ms 6:3=2ms 6:4=7ms 6:5=6ms"
"""What a multicast by client 6 takes to each of six processes."""


@pytest.mark.parametrize(
    ("groups", "answers", "milliseconds"),
    [
        ("", "", 7 + 1),
        ("", "all", 7 + 1),
        ("", "last", 6 + 1),
        # The first of each group, at 3 and at 2 ms; or the first of the last group.
        ("2x3", "", 3 + 1),
        ("2x3", "all", 3 + 1),
        ("2x3", "last", 2 + 1),
        ("3x2", "last", 6 + 1),
    ],
)
def test_who_is_chosen_to_answer(groups: str, answers: str, milliseconds: float) -> None:
    stack = "leader best-effort" if groups else "best-effort"
    scenario = Scenario(
        stack, 6, 1, "broadcast", "unit", 0.05, groups=groups, answers=answers, links=UNEVEN
    )
    outcome, _ = run(scenario)
    assert outcome.client_latency * 1000 == pytest.approx(milliseconds)


def test_a_protocol_in_which_the_last_answers_can_have_all_answer() -> None:
    """The first destination of D&F is reached after one step, and answers late if links say so."""
    late = "0:4=20ms"
    scenario = Scenario("df", 4, 1, "broadcast", "unit", 0.1, links=late)
    assert run(scenario)[0].client_latency * 1000 == pytest.approx(5)
    assert run(replace(scenario, answers="all"))[0].client_latency * 1000 == pytest.approx(1 + 20)


def test_a_replica_that_crashes_does_not_stop_the_load() -> None:
    """Any member of the last group may answer, not the last destination alone."""
    scenario = Scenario(
        "leader best-effort", 6, 1, "broadcast", "unit", 0.1, groups="2x3", answers="last",
        faults=Faults(crashes=("5@20ms", "0@30ms")),
    )  # fmt: skip
    outcome, history = run(scenario)
    assert outcome.answered == outcome.multicasts == 50
    assert set(history.crashes.process.tolist()) == {0, 5}


@pytest.mark.parametrize(
    ("groups", "answers", "told"),
    [("", "", "all"), ("", "last", "last"), ("2x3", "last", "last-group"), ("2x3", "", "all")],
)
def test_the_row_of_a_run_tells_who_answers(groups: str, answers: str, told: str) -> None:
    stack = "leader best-effort" if groups else "best-effort"
    scenario = Scenario(stack, 6, 1, "broadcast", groups=groups, answers=answers)
    row = description(scenario)
    assert (row.cost_model or "").endswith(f"answers={told}")
    assert json.loads(row.options).get("answers", "") == answers


def test_the_last_answer_is_what_a_client_waits_for() -> None:
    """Client 2, in Singapore, multicasts to Ireland and California."""
    network = "wan:jitter=0s,send=0s,receive=0s,byte=0s"
    scenario = Scenario("best-effort", 2, 1, "broadcast", network, duration=0.5)
    outcome, _ = run(scenario)
    there_and_back = [one_way_ns(2, region) + one_way_ns(region, 2) for region in (0, 1)]
    assert outcome.client_latency == pytest.approx(max(there_and_back) / 1e9)
    assert min(there_and_back) < max(there_and_back)


@pytest.mark.parametrize("rate", [500.0, 2000.0])
def test_an_open_loop_client_keeps_its_rate(rate: float) -> None:
    """Answers take 2 ms, so at 2000 a second a closed loop could not; gaps are exponential."""
    outcome, history = run(replace(UNIT, clients=2, rate=rate, duration=1.0))
    expected = 2 * rate
    assert abs(outcome.multicasts - expected) < 5 * sqrt(expected)
    for client in (4, 5):
        gaps = np.diff(history.multicasts.time[history.multicasts.process == client])
        assert gaps.mean() == pytest.approx(1e9 / rate, rel=0.2)
        # An exponential distribution is as wide as its mean.
        assert gaps.std() == pytest.approx(1e9 / rate, rel=0.25)
    assert outcome.answered == outcome.multicasts


def test_throughput_and_latency_obey_littles_law() -> None:
    """In a closed loop: clients = throughput x latency, but for the end of the run."""
    outcome, _ = run(Scenario("skeen", 8, 16, "random:3", "lan", duration=0.2))
    in_flight = outcome.client_throughput * outcome.client_latency
    assert in_flight == pytest.approx(16, rel=0.02)


def test_a_saturated_process_answers_one_message_per_cost() -> None:
    outcome, _ = run(Scenario("best-effort", 1, 50, "random:1", "unit:receive=0.5ms", duration=1.0))
    # What is under way when the clients stop is answered as well: at most 50 more.
    assert 2000 <= outcome.answered <= 2050
    # Fifty wait for each other: 50 x 0.5 ms.
    assert outcome.client_latency == pytest.approx(0.025, rel=0.02)


def test_the_outcome_counts_what_the_trace_holds() -> None:
    outcome, history = run(UNIT)
    assert outcome.multicasts == len(history.multicasts.message)
    assert outcome.deliveries == len(history.deliveries.message) == 2 * outcome.multicasts
    assert outcome.answered == outcome.multicasts
    assert outcome.complete
    assert history.complete


def test_a_run_without_time_to_drain_is_cut_short() -> None:
    outcome, history = run(replace(UNIT, drain=0.0))
    assert not outcome.complete
    assert not history.complete
    assert outcome.answered < outcome.multicasts


def test_clients_stop_after_the_duration() -> None:
    _, history = run(UNIT)
    assert history.multicasts.time.max() < 50 * MS


def test_clients_do_not_move_in_lockstep() -> None:
    _, history = run(replace(UNIT, clients=10))
    first = [history.multicasts.time[history.multicasts.process == 4 + c][0] for c in range(10)]
    assert len(set(first)) > 8
    assert max(first) < 1000


@pytest.mark.parametrize(
    ("scenario", "complaint"),
    [
        (replace(UNIT, processes=0), "0 processes cannot be simulated; give a number from 1 to"),
        (replace(UNIT, processes=10**6), "1000000 processes cannot be simulated"),
        (replace(UNIT, clients=0), "0 clients cannot be simulated; give a number from 1 to"),
        (replace(UNIT, duration=0.0), "a duration of 0.0 s is not possible; give seconds above 0"),
        (replace(UNIT, duration=-1.0), "a duration of -1.0 s is not possible"),
        (replace(UNIT, duration=float("nan")), "a duration of nan s is not possible"),
        (replace(UNIT, duration=float("inf")), "a duration of inf s is not possible"),
        (replace(UNIT, rate=-1.0), "a rate of -1.0 messages a second is not possible; give 0"),
        (replace(UNIT, drain=-1.0), "a drain time of -1.0 s is not possible; give 0 to 1e6"),
        (replace(UNIT, rate=float("nan")), "a rate of nan messages a second"),
        (replace(UNIT, rate=float("inf")), "a rate of inf messages a second"),
        (replace(UNIT, drain=float("nan")), "a drain time of nan s"),
        (replace(UNIT, drain=float("inf")), "a drain time of inf s"),
        (replace(UNIT, workload="random:5"), "wants 5 destinations out of 4 processes"),
        (replace(UNIT, network="cable"), "unknown network 'cable'"),
        (replace(UNIT, stack="nobody"), "unknown protocol 'nobody'"),
        (replace(UNIT, stack="dcc", network="lan:fifo=no"), "missing fifo"),
        (replace(UNIT, stack="skeen", network="lan:loss=0.1"), "missing reliable"),
        # Nothing takes any time, so a closed loop would never come to its end.
        (replace(UNIT, network="unit:delay=0s"), "delay"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_scenario_that_cannot_be_simulated(scenario: Scenario, complaint: str) -> None:
    def started(share: float) -> None:
        pytest.fail("it was simulated all the same")

    with pytest.raises(UsageError) as caught:
        run_scenario(scenario, progress=started)
    assert complaint in str(caught.value)


def test_a_run_is_named_after_what_matters() -> None:
    assert UNIT.run.startswith("best-effort-random-2-4p-3c-s1-")
    names = {
        scenario.run
        for scenario in (
            UNIT,
            replace(UNIT, seed=2),
            replace(UNIT, duration=0.06),
            replace(UNIT, drain=1.0),
            replace(UNIT, network="unit:fifo=no"),
        )
    }
    assert len(names) == 5
