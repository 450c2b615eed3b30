"""What runs over the log of each group: random schedules in which members crash and start again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.testing.replica_schedules import Load, replica_schedule
from flexgroup.trace.collector import Collector
from flexgroup.worlds.bench import Bench
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, run_scenario

from ..explorer.variants_restarted import VARIANTS, nothing_taken_out
from .restart_schedules import Failures, group_restart_schedule

STACKS = [f"leader paxos {name}" for name in ("skeen-cft", "df-cft", "dcc-cft", "ft-abcast")]

SIZES = ((3, 1), (3, 3), (1, 3, 1), (1, 1, 1), (2, 1, 3))


def outcomes(stack: str | StackPlan, seeds: range) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in seeds:
        sizes = SIZES[seed % len(SIZES)]
        failures = Failures((1, 2, 3)[seed // 2 % 3], seed % 7, seed // 3 % 4)
        fifo = bool(seed // 7 % 2)
        found[group_restart_schedule(stack, sizes, 2 + seed % 6, failures, seed, fifo)] += 1
    return found


@settings(max_examples=60, deadline=None)
@given(
    stack=st.sampled_from(STACKS),
    sizes=st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=3),
    multicasts=st.integers(1, 6),
    down=st.integers(1, 3),
    crashes=st.integers(0, 6),
    suspicions=st.integers(0, 4),
    seed=st.integers(0, 1 << 32),
    fifo=st.booleans(),
)
def test_every_schedule_keeps_what_is_promised(
    stack: str,
    sizes: list[int],
    multicasts: int,
    down: int,
    crashes: int,
    suspicions: int,
    seed: int,
    fifo: bool,
) -> None:
    """All members of a group may be down at a time, if they come back."""
    failures = Failures(down, crashes, suspicions if sum(sizes) > 1 else 0)
    assert group_restart_schedule(stack, tuple(sizes), multicasts, failures, seed, fifo) == ""


@pytest.mark.parametrize("stack", STACKS)
def test_in_1000_schedules(stack: str) -> None:
    """So many suffice to catch each of the variants below."""
    assert outcomes(stack, range(1000)) == {"": 1000}


@pytest.mark.large
@pytest.mark.parametrize("stack", STACKS)
def test_in_5000_schedules(stack: str) -> None:
    assert outcomes(stack, range(1000, 6000)) == {"": 5000}


@pytest.mark.parametrize("every", [1, 2, 3])
@pytest.mark.parametrize("stack", STACKS)
def test_in_200_schedules_in_which_the_state_is_saved_often(stack: str, every: int) -> None:
    plan = nothing_taken_out(stack.split()[-1], every)
    assert outcomes(plan, range(200)) == {"": 200}


@pytest.mark.large
@pytest.mark.parametrize("every", [1, 2, 3])
@pytest.mark.parametrize("stack", STACKS)
def test_in_2000_schedules_in_which_the_state_is_saved_often(stack: str, every: int) -> None:
    plan = nothing_taken_out(stack.split()[-1], every)
    assert outcomes(plan, range(1000, 3000)) == {"": 2000}


@pytest.mark.parametrize(("crashes", "seed"), [(4, 14_407), (2, 69_475)])
def test_an_end_is_lost_that_was_sent_before_its_sender_heard_of_the_start(
    crashes: int, seed: int
) -> None:
    """Though the process was up, and its entry in the log: it has to wait until all have heard."""
    load = Load(5, crashes, 2, depth=3, meets_late=True)
    plan = parse_stack("leader paxos ft-abcast")
    assert replica_schedule(plan, (3, 3, 3), load, seed).broken == ""


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.__name__)
def test_the_same_schedules_catch_variants(variant: Callable[[], StackPlan]) -> None:
    plan = variant()
    assert any(set(outcomes(plan, range(seed, seed + 1))) != {""} for seed in range(1000))


@pytest.mark.parametrize("stack", STACKS)
def test_the_log_below_is_cut_off_behind_the_states_that_are_saved(stack: str) -> None:
    bench = Bench(nothing_taken_out(stack.split()[-1], 8), 4, replicas=replicas_of_sizes([3, 1]))
    for number in range(100):
        bench.cast(number % 5, (0, 1, 2, 3))
        while bench.channels:
            bench.deliver(*next(iter(bench.channels)))
    for process in range(4):
        host = bench.hosts[process]
        log: Any = host.stack.layers[1]
        assert len(log.ledger.votes) < 20
        assert len(host.stored[1].log) < 20
    assert [len(order) for order in bench.delivered] == [100] * 4


@pytest.mark.parametrize("stack", STACKS)
def test_in_the_simulator_members_that_recover_deliver_what_the_others_do(stack: str) -> None:
    faults = Faults(
        crashes=("0@50ms", "4@60ms", "1@120ms"),
        recoveries=("0@90ms", "4@95ms", "1@170ms"),
        detection="5ms",
    )
    collector = Collector()
    scenario = Scenario(
        stack, 6, 3, "random:2", "lan", 0.3, drain=1.0, rate=50.0, faults=faults, groups="2x3"
    )
    run_scenario(scenario, collector)
    rows = collector.history("test", 6, complete=True).deliveries
    orders: list[list[int]] = [[] for _ in range(6)]
    for process, m in zip(rows.process.tolist(), rows.message.tolist(), strict=True):
        orders[process].append(m)
    for group in (orders[:3], orders[3:]):
        assert group[0] == group[1] == group[2]
        assert len(group[0]) == len(set(group[0])) > 20
