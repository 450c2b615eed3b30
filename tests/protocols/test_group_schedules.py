"""Random schedules of multicasts to groups of replicas: crashes of fewer than half, and errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.protocols.catalogue import StackPlan

from ..explorer.variants_replicated import LOSING
from .replica_schedules import VALIDITY, Load, replica_schedule
from .suspicion_schedules import AGREEMENT

STACKS = [f"leader paxos {name}" for name in ("skeen-cft", "df-cft", "dcc-cft", "ft-abcast")]

SIZES = ((3, 1), (3, 3), (1, 3, 1), (3, 1, 3), (5, 1))


def outcomes(stack: str | StackPlan, seeds: range) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in seeds:
        load = Load(2 + seed % 5, seed // 2 % 4, seed // 3 % 4)
        sizes = SIZES[seed % len(SIZES)]
        fifo = bool(seed // 7 % 2)
        found[replica_schedule(stack, sizes, load, seed, fifo)] += 1
    return found


@settings(max_examples=60, deadline=None)
@given(
    stack=st.sampled_from(STACKS),
    sizes=st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=4),
    multicasts=st.integers(1, 6),
    crashes=st.integers(0, 4),
    suspicions=st.integers(0, 5),
    seed=st.integers(0, 1 << 32),
    fifo=st.booleans(),
)
def test_every_schedule_keeps_what_is_promised(
    stack: str,
    sizes: list[int],
    multicasts: int,
    crashes: int,
    suspicions: int,
    seed: int,
    fifo: bool,
) -> None:
    load = Load(multicasts, crashes, suspicions)
    assert replica_schedule(stack, tuple(sizes), load, seed, fifo) == ""


@pytest.mark.parametrize("stack", STACKS)
def test_in_500_schedules(stack: str) -> None:
    assert outcomes(stack, range(1000, 1500)) == {"": 500}


@pytest.mark.large
@pytest.mark.parametrize("stack", STACKS)
def test_in_5000_schedules(stack: str) -> None:
    assert outcomes(stack, range(1000, 6000)) == {"": 5000}


@pytest.mark.parametrize("variant", LOSING, ids=lambda variant: variant.__name__)
def test_the_same_schedules_catch_variants(variant: Callable[[], StackPlan]) -> None:
    assert AGREEMENT in outcomes(variant(), range(600))


def test_and_ft_abcast_as_published() -> None:
    found = outcomes("leader paxos ft-abcast-published", range(300))
    assert found[AGREEMENT] + found[VALIDITY] > 50
