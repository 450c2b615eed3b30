"""The hypercube of section 3.1 of the paper on atomic broadcast over VCube, and its trees."""

from __future__ import annotations

import pytest

from flexgroup.protocols.parts.hypercube import (
    NOBODY,
    cluster,
    dimension,
    ff_neighbor,
    members,
    neighborhood,
)

# Table 1: the clusters of each process in a VCube of three dimensions.
TABLE_1 = """
1 | 1       | 0       | 3       | 2       | 5       | 4       | 7       | 6
2 | 2 3     | 3 2     | 0 1     | 1 0     | 6 7     | 7 6     | 4 5     | 5 4
3 | 4 5 6 7 | 5 4 7 6 | 6 7 4 5 | 7 6 5 4 | 0 1 2 3 | 1 0 3 2 | 2 3 0 1 | 3 2 1 0
"""


def recursive(i: int, s: int) -> list[int]:
    """c(i, s) as the paper defines it."""
    first = i ^ (1 << (s - 1))
    return [first, *(j for t in range(1, s) for j in recursive(first, t))]


def test_table_1() -> None:
    for line in TABLE_1.strip().splitlines():
        s, *columns = line.split("|")
        for i, column in enumerate(columns):
            assert members(i, int(s), 8) == [int(word) for word in column.split()]


def test_the_closed_form_is_the_recursion() -> None:
    for i in range(16):
        for s in (1, 2, 3, 4):
            assert members(i, s, 16) == recursive(i, s), (i, s)


def test_first_fault_free_neighbours_without_faults() -> None:
    assert [ff_neighbor(0, s, 8, set()) for s in (1, 2, 3)] == [1, 2, 4]


def test_the_next_in_a_cluster_stands_in_for_the_crashed() -> None:
    assert ff_neighbor(0, 2, 8, {2}) == 3


def test_a_cluster_may_have_nobody_left() -> None:
    assert ff_neighbor(0, 1, 8, {1}) == NOBODY


def test_neighborhoods_of_the_source_and_of_a_process_two_levels_below() -> None:
    assert neighborhood(0, 1, dimension(8), 8, set()) == [1, 2, 4]
    assert neighborhood(4, 1, 2, 8, set()) == [5, 6]


def test_the_cluster_of_a_process_says_how_deep_its_part_of_the_tree_is() -> None:
    assert cluster(4, 0) == 3
    assert all(cluster(i, j) == cluster(j, i) for i in range(8) for j in range(8))
    assert all(j in members(i, cluster(i, j), 8) for i in range(8) for j in range(8) if i != j)


def reached(root: int, n: int, crashed: set[int]) -> list[int]:
    """Everybody in the tree of a process, as often as it is sent to."""
    found = [root]
    todo = [(root, dimension(n))]
    while todo:
        i, s = todo.pop()
        for p in neighborhood(i, 1, s, n, crashed):
            found.append(p)
            todo.append((p, cluster(p, i) - 1))
    return sorted(found)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 12, 13, 16, 33])
def test_a_tree_reaches_everybody_once_for_any_number_of_processes(n: int) -> None:
    for root in range(n):
        assert reached(root, n, set()) == list(range(n))


@pytest.mark.parametrize("crashed", [{1}, {4}, {2, 3}, {1, 2, 4}, {2, 3, 4, 5, 6, 7}])
@pytest.mark.parametrize("n", [8, 11])
def test_a_tree_reaches_all_that_are_up_once(n: int, crashed: set[int]) -> None:
    up = [p for p in range(n) if p not in crashed]
    for root in up:
        assert reached(root, n, crashed) == up
