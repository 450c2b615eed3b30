"""Random schedules of RamCast: crashes of fewer than half, and failure detectors that err."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.protocols.catalogue import StackPlan

from ..explorer import variants_ramcast as variants
from ..explorer.variants_ramcast import RAMCAST
from .replica_schedules import VALIDITY, Load, replica_schedule
from .suspicion_schedules import ORDER

SIZES = ((3,), (3, 1), (3, 3), (1, 1), (3, 2, 1), (5,), (5, 3))


def schedule(stack: StackPlan, seed: int) -> str:
    load = Load(1 + seed % 8, seed // 2 % 3, seed // 3 % 6)
    return replica_schedule(stack, SIZES[seed % len(SIZES)], load, seed)


@settings(max_examples=150, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    multicasts=st.integers(1, 8),
    crashes=st.integers(0, 3),
    suspicions=st.integers(0, 6),
    seed=st.integers(0, 1 << 32),
)
def test_every_schedule_keeps_what_is_promised(
    sizes: list[int], multicasts: int, crashes: int, suspicions: int, seed: int
) -> None:
    load = Load(multicasts, crashes, suspicions)
    assert replica_schedule(RAMCAST, tuple(sizes), load, seed) == ""


def test_in_2000_schedules() -> None:
    assert Counter([schedule(RAMCAST, seed) for seed in range(1000, 3000)]) == {"": 2000}


@pytest.mark.large
def test_in_20000_schedules() -> None:
    assert Counter([schedule(RAMCAST, seed) for seed in range(1000, 21_000)]) == {"": 20_000}


@pytest.mark.parametrize(
    "variant",
    [
        variants.memory_that_never_revokes,
        variants.memory_that_checks_when_a_write_is_sent,
        variants.memory_that_calls_every_write_landed,
        variants.memory_without_completions,
        variants.ramcast_that_needs_one_acknowledgement_too_few,
        variants.ramcast_that_takes_over_alone,
        variants.ramcast_that_takes_its_own_timestamp,
        variants.ramcast_that_delivers_what_is_final,
        variants.ramcast_without_a_floor,
        variants.ramcast_that_ignores_what_it_reads,
        variants.ramcast_that_reads_no_clock,
        variants.ramcast_that_tells_only_its_own_group,
        variants.ramcast_that_is_done_with_what_it_delivered,
        variants.ramcast_that_forgets_what_it_delivered,
    ],
)
def test_the_same_schedules_catch_variants(variant: Callable[[], StackPlan]) -> None:
    stack = variant()
    assert any(schedule(stack, seed) for seed in range(200))


@pytest.mark.parametrize(
    ("variant", "sizes", "load", "seed", "broken"),
    [
        (variants.ramcast_that_believes_a_leader_without_permission,
         (3, 1), Load(8, 1, 8), 198, ORDER),
        (variants.ramcast_that_takes_any_state, (3, 3), Load(14, 1, 6), 891, ORDER),
        (variants.ramcast_that_acknowledges_to_an_old_leader, (3, 1), Load(8, 0, 6), 641, ORDER),
        (variants.ramcast_that_tells_nobody_of_an_abandoned_ballot,
         (3, 2, 1), Load(3, 2, 3), 9370, VALIDITY),
    ],
)  # fmt: skip
def test_long_schedules_catch_what_is_rare(
    variant: Callable[[], StackPlan], sizes: tuple[int, ...], load: Load, seed: int, broken: str
) -> None:
    """So much goes on that several ballots meet; the protocol itself passes the same seeds."""
    assert replica_schedule(variant(), sizes, load, seed) == broken
    assert replica_schedule(RAMCAST, sizes, load, seed) == ""
