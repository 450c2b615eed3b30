"""`partitioned:GxC` and `alternating:GxC`, with and without messages to random sets: section 7.2.2
of the DCC dissertation."""

from __future__ import annotations

from collections import Counter
from math import sqrt
from random import Random

import pytest

from flexgroup.workloads import parse_workload

SAMPLES = 50_000
STANDARD_DEVIATIONS = 5

PAIRS = {(0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (10, 11), (12, 13), (14, 15)}
QUARTETS = {(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11), (12, 13, 14, 15)}
HALVES = {tuple(range(8)), tuple(range(8, 16))}
ALTERNATE_PAIRS = {(p, p + 8) for p in range(8)}
ODD_AND_EVEN = {tuple(range(0, 16, 2)), tuple(range(1, 16, 2))}


def sample(spec: str, seed: int) -> Counter[tuple[int, ...]]:
    workload, rng = parse_workload(spec, 16), Random(seed)
    return Counter(workload.next(0, rng) for _ in range(SAMPLES))


@pytest.mark.parametrize(
    ("spec", "groups"),
    [
        ("partitioned:2x8", PAIRS),
        ("partitioned:4x4", QUARTETS),
        ("partitioned:8x2", HALVES),
        ("alternating:2x8", ALTERNATE_PAIRS),
        ("alternating:8x2", ODD_AND_EVEN),
    ],
)
def test_a_message_goes_to_one_whole_group_and_all_groups_alike(
    spec: str, groups: set[tuple[int, ...]]
) -> None:
    counts = sample(spec, seed=1)
    assert set(counts) == groups
    expected = SAMPLES / len(groups)
    tolerance = STANDARD_DEVIATIONS * sqrt(expected * (1 - 1 / len(groups)))
    assert all(abs(count - expected) < tolerance for count in counts.values())


def test_one_client_uses_all_groups() -> None:
    workload, rng = parse_workload("partitioned:2x8", 16), Random(2)
    assert {workload.next(5, rng) for _ in range(500)} == PAIRS


@pytest.mark.parametrize("share", [0.01, 0.02, 0.05])
def test_a_share_of_the_messages_goes_to_random_sets(share: float) -> None:
    counts = sample(f"partitioned:4x4@{share}", seed=3)
    strays = sum(count for chosen, count in counts.items() if chosen not in QUARTETS)
    # Sixteen sizes are equally likely, and 4 of the 1820 sets of size 4 are groups.
    visible = share * (1 - 1 / 16 * 4 / 1820)
    tolerance = STANDARD_DEVIATIONS * sqrt(SAMPLES * visible * (1 - visible))
    assert abs(strays - SAMPLES * visible) < tolerance


def test_the_random_sets_have_any_number_of_destinations() -> None:
    strays = {len(chosen) for chosen in sample("partitioned:4x4@0.05", seed=4)}
    assert strays == set(range(1, 17))


def test_the_ends_of_the_range_of_shares() -> None:
    assert set(sample("partitioned:4x4@0", seed=5)) == QUARTETS
    always, never_mixed = parse_workload("partitioned:4x4@1", 16), parse_workload("random:N", 16)
    ours, theirs = Random(6), Random(6)
    for _ in range(100):
        theirs.random()  # the mixed workload first asks whether this message is a stray
        assert always.next(0, ours) == never_mixed.next(0, theirs)
