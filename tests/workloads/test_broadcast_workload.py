"""`broadcast`: everyone, every time."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from flexgroup.workloads import parse_workload


@given(st.integers(1, 200), st.integers(0, 1000))
def test_everyone_is_a_destination(processes: int, client: int) -> None:
    workload = parse_workload("broadcast", processes)
    assert workload.next(client, Random(0)) == tuple(range(processes))


def test_it_leaves_the_generator_alone() -> None:
    rng = Random(1)
    before = rng.getstate()
    parse_workload("broadcast", 16).next(0, rng)
    assert rng.getstate() == before
