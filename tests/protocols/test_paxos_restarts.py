"""Paxos with stable storage: random schedules in which replicas crash and start again."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.protocols.catalogue import StackPlan

from ..explorer.variants_paxos import RESTART_VARIANTS
from .restart_schedules import Failures, restart_schedule

PAXOS = "leader paxos"


def outcomes(stack: str | StackPlan, seeds: range) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in seeds:
        size = (3, 3, 4, 5)[seed % 4]
        failures = Failures((size - 1) // 2, seed % 7, seed // 3 % 4)
        found[restart_schedule(stack, size, 2 + seed % 6, failures, seed)] += 1
    return found


@settings(max_examples=150, deadline=None)
@given(
    size=st.integers(1, 5),
    broadcasts=st.integers(1, 8),
    crashes=st.integers(0, 6),
    suspicions=st.integers(0, 4),
    stay_down=st.booleans(),
    seed=st.integers(0, 1 << 32),
    fifo=st.booleans(),
)
def test_every_schedule_keeps_what_is_promised(
    size: int,
    broadcasts: int,
    crashes: int,
    suspicions: int,
    stay_down: bool,
    seed: int,
    fifo: bool,
) -> None:
    failures = Failures((size - 1) // 2, crashes, suspicions if size > 2 else 0, stay_down)
    assert restart_schedule(PAXOS, size, broadcasts, failures, seed, fifo) == ""


@settings(max_examples=50, deadline=None)
@given(size=st.integers(1, 4), crashes=st.integers(1, 8), seed=st.integers(0, 1 << 32))
def test_all_replicas_may_be_down_at_a_time_if_they_come_back(
    size: int, crashes: int, seed: int
) -> None:
    """What a client asked for is lost if all crash that have heard of it."""
    assert restart_schedule(PAXOS, size, 5, Failures(size, crashes, 0), seed) in ("", "validity")


def test_in_300_schedules() -> None:
    assert outcomes(PAXOS, range(300)) == {"": 300}


@pytest.mark.slow
def test_in_5000_schedules() -> None:
    assert outcomes(PAXOS, range(1000, 6000)) == {"": 5000}


@pytest.mark.parametrize("variant", RESTART_VARIANTS, ids=lambda variant: variant.__name__)
def test_the_same_schedules_catch_what_stores_or_tells_too_little(variant: object) -> None:
    assert callable(variant)
    found = outcomes(variant(), range(400))
    assert set(found) - {""}
