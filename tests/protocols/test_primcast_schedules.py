"""Schedules of PrimCast: crashes of fewer than half of a group, and failure detectors that err."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.core.errors import UsageError
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.worlds.bench import Bench
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, run_scenario

from ..explorer import variants_primcast as variants
from .primcast_cases import (
    a_clock_that_only_the_primary_has,
    a_promise_that_nobody_else_knows_of,
    a_proposal_that_is_refused,
    an_epoch_that_only_its_primary_enters,
)
from .replica_schedules import VALIDITY, Load, broken_promise, replica_schedule
from .suspicion_schedules import AGREEMENT, ORDER

PRIMCAST = "leader primcast"
SIZES = [(3, 1), (3,), (3, 3), (1, 1, 1), (3, 3, 1), (5,), (5, 1), (2, 3)]


def outcome(stack: str | StackPlan, seed: int) -> str:
    load = Load(2 + seed % 7, seed // 2 % 3, seed // 3 % 5)
    return replica_schedule(stack, SIZES[seed % len(SIZES)], load, seed)


def outcomes(stack: str | StackPlan, seeds: range) -> Counter[str]:
    return Counter(outcome(stack, seed).partition(":")[0] for seed in seeds)


@settings(max_examples=150, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    multicasts=st.integers(1, 8),
    crashes=st.integers(0, 4),
    suspicions=st.integers(0, 5),
    seed=st.integers(0, 1 << 32),
)
def test_every_schedule_keeps_what_is_promised(
    sizes: list[int], multicasts: int, crashes: int, suspicions: int, seed: int
) -> None:
    load = Load(multicasts, crashes, suspicions)
    assert replica_schedule(PRIMCAST, tuple(sizes), load, seed) == ""


def test_in_1000_schedules() -> None:
    assert outcomes(PRIMCAST, range(1000, 2000)) == {"": 1000}


@pytest.mark.large
def test_in_10000_schedules() -> None:
    assert outcomes(PRIMCAST, range(1000, 11000)) == {"": 10000}


CAUGHT: list[tuple[Callable[[], StackPlan], str]] = [
    (variants.primcast_that_decides_with_one_ack_too_few, ORDER),
    (variants.primcast_that_begins_with_one_promise_too_few, ORDER),
    (variants.primcast_that_does_not_ask_the_primarys_clock, ORDER),
    (variants.primcast_that_counts_acks_of_all_epochs_together, ORDER),
    (variants.primcast_that_acknowledges_whatever_it_promised, ORDER),
    (variants.primcast_that_begins_with_its_own_T, ORDER),
    (variants.primcast_that_begins_with_its_own_clock, AGREEMENT),
    (variants.primcast_that_takes_the_lowest_timestamp, ORDER),
    (variants.primcast_that_does_not_wait_for_lower_timestamps, ORDER),
    (variants.primcast_that_delivers_without_all_local_timestamps, ORDER),
    (variants.primcast_without_the_state_of_the_epoch, ORDER),
    (variants.primcast_that_does_not_acknowledge_the_state, AGREEMENT),
    (variants.primcast_that_does_not_tell_other_groups_again, AGREEMENT),
    (variants.primcast_that_does_not_propose_what_waited, VALIDITY),
    (variants.primcast_that_keeps_its_clock, AGREEMENT),
    (variants.primcast_that_forgets_what_it_has_delivered, ORDER),
    (variants.primcast_that_sends_the_message_once, AGREEMENT),
]


@pytest.mark.parametrize(
    ("variant", "broken"), CAUGHT, ids=lambda case: getattr(case, "__name__", case)
)
def test_the_same_schedules_catch_a_broken_variant(
    variant: Callable[[], StackPlan], broken: str
) -> None:
    assert broken in outcomes(variant(), range(400))


SHOWN: list[tuple[Callable[[StackPlan], Bench], Callable[[], StackPlan], str]] = [
    (a_clock_that_only_the_primary_has,
     variants.primcast_that_asks_only_the_primarys_clock, ORDER),
    (an_epoch_that_only_its_primary_enters,
     variants.primcast_that_delivers_before_a_quorum_is_in_the_epoch, ORDER),
    (a_proposal_that_is_refused,
     variants.primcast_that_delivers_though_it_promised_another_epoch, ORDER),
    (a_promise_that_nobody_else_knows_of,
     variants.primcast_that_does_not_tell_who_is_next, AGREEMENT),
]  # fmt: skip
"""What random schedules hardly ever meet, and the schedule that shows it."""


@pytest.mark.parametrize(
    ("schedule", "variant", "broken"), SHOWN, ids=lambda case: getattr(case, "__name__", case)
)
def test_a_schedule_shows_what_a_condition_is_for(
    schedule: Callable[[StackPlan], Bench], variant: Callable[[], StackPlan], broken: str
) -> None:
    bench = schedule(parse_stack(PRIMCAST))
    assert broken_promise(bench) == ""
    assert all(bench.delivered[process] for process in range(4) if process not in bench.crashed)
    assert broken_promise(schedule(variant())) == broken


@pytest.mark.parametrize(
    ("variant", "load", "seed", "broken"),
    [
        # Three epochs, and one T that was left out.
        (variants.primcast_that_begins_with_the_longest_T_of_any_epoch, Load(7, 2, 5), 59, ORDER),
        (variants.primcast_that_does_not_hear_of_epochs, Load(3, 1, 3), 5, VALIDITY),
    ],
)
def test_a_seed_shows_what_is_met_once_in_a_few_hundred(
    variant: Callable[[], StackPlan], load: Load, seed: int, broken: str
) -> None:
    assert replica_schedule(variant(), (3, 1), load, seed) == broken
    assert replica_schedule(PRIMCAST, (3, 1), load, seed) == ""


# Restarts.


@pytest.mark.parametrize("stack", ["log"])
def test_who_keeps_nothing_in_stable_storage_does_not_start_again(stack: str) -> None:
    """In no world: it would break what it told others before."""
    plan = parse_stack(stack)
    bench = Bench(plan, 3, replicas=replicas_of_sizes([3]))
    bench.crash(2)
    with pytest.raises(UsageError, match="what it told others is not in stable storage"):
        bench.recover(2)
    casts = (PlannedCast(0, (0, 1, 2)),)
    scope = Scope(3, casts, bounds=Bounds(crashes=1, restarts=1), replicas=bench.replicas)
    with pytest.raises(UsageError, match="cannot start again"):
        explore(plan, scope)
    faults = Faults(crashes=("2@10ms",), recoveries=("2@20ms",), detection="5ms")
    scenario = Scenario(stack, 3, 1, "random:1", "lan", 0.1, faults=faults, groups="1x3")
    with pytest.raises(UsageError, match="cannot start again"):
        run_scenario(scenario)
