"""The sets in which the validator remembers steps, against Python's own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flexgroup.trace.validate.integers import IntegerSet

numbers = st.one_of(st.integers(0, 50), st.integers(0, 1 << 17), st.integers(0, 1 << 40))


@given(st.lists(st.lists(numbers, max_size=20), max_size=8))
def test_it_tells_what_was_there_before(batches: list[list[int]]) -> None:
    ours, theirs = IntegerSet(), set[int]()
    for batch in batches:
        ascending = sorted(batch)
        known = []
        for number in ascending:
            known.append(number in theirs)
            theirs.add(number)
        assert ours.add(np.array(ascending, dtype=np.int64)).tolist() == known
    probes = sorted({*theirs, *(number + 1 for number in theirs), 0})
    assert ours.holds(np.array(probes, dtype=np.int64)).tolist() == [n in theirs for n in probes]
    assert (ours.count, ours.largest) == (len(theirs), max(theirs, default=-1))
    missing = next((n for n in range(len(theirs) + 1) if n not in theirs), 0)
    assert ours.first_missing() == (missing if theirs and missing < max(theirs) else None)


def test_a_million_steps_take_a_bit_each() -> None:
    steps = IntegerSet()
    for start in range(0, 1 << 20, 1 << 16):
        assert not steps.add(np.arange(start, start + (1 << 16))).any()
    assert steps._bits is not None
    assert len(steps._bits) <= (1 << 20) // 4
    assert steps.first_missing() is None


def test_few_large_numbers_take_little_room() -> None:
    stamps = IntegerSet()
    stamps.add(np.arange(1000, dtype=np.int64) * 10**12)
    assert stamps._bits is None
    assert stamps.holds(np.array([5 * 10**12, 5])).tolist() == [True, False]
