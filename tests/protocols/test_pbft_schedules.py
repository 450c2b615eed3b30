"""Random schedules of PBFT: crashes, liars, timers that run out too early; and variants of it."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.protocols.catalogue import parse_stack
from flexgroup.testing.replica_schedules import ORDER, VALIDITY

from .liar_schedules import Load, liar_schedule
from .pbft_variants import CASES, VariantCase

PBFT = parse_stack("pbft")
SHORT = parse_stack("pbft/short")


def outcomes(seeds: range, liars: int = 1) -> Counter[str]:
    """What goes wrong in schedules of four replicas, or seven, one of which lies or crashes."""
    found: Counter[str] = Counter()
    for seed in seeds:
        lying = liars if seed % 5 else 0
        size = 4 if seed % 7 else 7
        load = Load(1 + seed % 5, lying, 0 if lying else 1, seed // 5 % 10, seed % 2 == 0)
        found[liar_schedule(PBFT if seed % 3 else SHORT, size, load, seed)] += 1
    return found


@settings(max_examples=100, deadline=None)
@given(
    size=st.sampled_from((1, 2, 4, 5, 7)),
    multicasts=st.integers(1, 6),
    timers=st.integers(0, 8),
    fifo=st.booleans(),
    short=st.booleans(),
    seed=st.integers(0, 1 << 32),
    data=st.data(),
)
def test_every_schedule_keeps_what_is_promised(
    size: int, multicasts: int, timers: int, fifo: bool, short: bool, seed: int, data: st.DataObject
) -> None:
    faulty = data.draw(st.integers(0, (size - 1) // 3))
    liars = data.draw(st.integers(0, faulty))
    load = Load(multicasts, liars, faulty - liars, timers, fifo)
    assert liar_schedule(SHORT if short else PBFT, size, load, seed) == ""


def test_in_1000_schedules() -> None:
    assert outcomes(range(1000, 2000)) == {"": 1000}


@pytest.mark.large
def test_in_10000_schedules() -> None:
    assert outcomes(range(1000, 11000)) == {"": 10000}


def test_with_one_liar_too_many_everything_breaks() -> None:
    """So these schedules can find what they look for."""
    found: Counter[str] = Counter()
    for seed in (1, 122):
        load = Load(2 + seed % 3, 2, 0, seed % 4, seed % 2 == 0, ("equivocate",))
        found[liar_schedule(PBFT, 4, load, seed)] += 1
    assert found == {VALIDITY: 1, ORDER: 1}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.variant.__name__)
def test_a_broken_variant_is_caught(case: VariantCase) -> None:
    broken = liar_schedule(case.variant(), 4, case.load, case.seed)
    assert broken.partition(":")[0] == case.broken
    assert liar_schedule(case.whole, 4, case.load, case.seed) == ""
