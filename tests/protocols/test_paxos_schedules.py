"""Random schedules of Paxos: crashes of fewer than half, and failure detectors that err."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.protocols.catalogue import StackPlan

from ..explorer.variant_parts import Case
from ..explorer.variants import named
from ..explorer.variants_paxos import DEEP_CASES
from .suspicion_schedules import ORDER, Errors, suspicion_schedule

PAXOS = "leader paxos"


def outcomes(stack: str | StackPlan, seeds: range, size: int | None = None) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in seeds:
        replicas = size or 3 + seed % 3
        errors = Errors(seed // 2 % ((replicas + 1) // 2), seed // 3 % 5)
        found[suspicion_schedule(stack, replicas, 2 + seed % 6, errors, seed)] += 1
    return found


@settings(max_examples=150, deadline=None)
@given(
    size=st.integers(1, 5),
    broadcasts=st.integers(1, 8),
    suspicions=st.integers(0, 5),
    seed=st.integers(0, 1 << 32),
    fifo=st.booleans(),
    data=st.data(),
)
def test_every_schedule_keeps_what_is_promised(
    size: int, broadcasts: int, suspicions: int, seed: int, fifo: bool, data: st.DataObject
) -> None:
    crashes = data.draw(st.integers(0, (size - 1) // 2))
    errors = Errors(crashes, suspicions if size > 2 else 0)
    assert suspicion_schedule(PAXOS, size, broadcasts, errors, seed, fifo) == ""


def test_in_500_schedules() -> None:
    assert outcomes(PAXOS, range(1000, 1500)) == {"": 500}


@pytest.mark.large
def test_in_5000_schedules() -> None:
    assert outcomes(PAXOS, range(1000, 6000)) == {"": 5000}


@pytest.mark.parametrize("case", DEEP_CASES, ids=named)
def test_the_same_schedules_catch_what_takes_the_explorer_long(case: Case) -> None:
    plan = case.variant()
    found = {suspicion_schedule(plan, 3, 6, Errors(s % 2, 3 + s % 3), s) for s in range(320)}
    assert found & {ORDER, "integrity", "validity"}
