"""`random:K` and `random:N`: no locality at all."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexgroup.workloads import parse_workload
from flexgroup.workloads.subsets import uniform_subset

SAMPLES = 60_000

# A sound generator strays further than this from one expected count less than once in a
# million seeds; the seed is fixed, so a test that passes goes on passing.
STANDARD_DEVIATIONS = 5


def assert_each_is_equally_frequent(counts: Counter[object], outcomes: int) -> None:
    expected = SAMPLES / outcomes
    tolerance = STANDARD_DEVIATIONS * sqrt(expected * (1 - 1 / outcomes))
    assert len(counts) == outcomes
    for count in counts.values():
        assert abs(count - expected) <= tolerance


@given(st.integers(1, 60), st.data())
def test_random_k_has_exactly_k_destinations(processes: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, processes))
    workload = parse_workload(f"random:{size}", processes)
    rng = Random(data.draw(st.integers(0, 2**32)))
    assert all(len(workload.next(client, rng)) == size for client in range(10))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
def test_every_set_of_a_size_is_equally_likely(size: int) -> None:
    rng = Random(1)
    counts: Counter[object] = Counter(uniform_subset(6, size, rng) for _ in range(SAMPLES))
    assert set(counts) == set(combinations(range(6), size))
    assert_each_is_equally_frequent(counts, len(list(combinations(range(6), size))))


def test_random_n_uses_every_number_of_destinations_equally_often() -> None:
    workload, rng = parse_workload("random:N", 16), Random(2)
    counts: Counter[object] = Counter(len(workload.next(0, rng)) for _ in range(SAMPLES))
    assert_each_is_equally_frequent(counts, 16)


def test_one_process_is_always_the_destination() -> None:
    for spec in ("random:1", "random:N"):
        assert parse_workload(spec, 1).next(0, Random(4)) == (0,)
