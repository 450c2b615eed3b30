"""The table of visited states and the queue of a level, where some of it goes to files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import pytest
from librt.vecs import vec
from mypy_extensions import i32

from flexgroup.worlds.explorer.frontier import StateQueue
from flexgroup.worlds.explorer.spilled import NONE
from flexgroup.worlds.explorer.visited import UNKNOWN, Visited

TINY = 1
"""So few bytes that the table stays as small as it begins."""


def added(visited: Visited, states: int) -> dict[int, tuple[int, int]]:
    """Add states of many levels, some of them twice, and return the parent and level of each."""
    random = Random(1)
    expected: dict[int, tuple[int, int]] = {}
    for number in range(states):
        key = random.getrandbits(62) if number % 3 else random.choice([*expected, 0])
        level = number // 300
        known = visited.add(key, number, level)
        assert known == (expected[key][1] if key in expected else NONE)
        expected.setdefault(key, (number, level))
    return expected


@pytest.mark.parametrize("at_most", [0, TINY])
def test_a_state_is_new_once(at_most: int) -> None:
    visited = Visited(at_most)
    expected = added(visited, 8000)
    assert visited.count == len(expected)
    assert {key: parent for key, (parent, _) in expected.items()} == {
        key: visited.parent(key) for key in expected
    }
    assert visited.parent(max(expected) - 1) == UNKNOWN
    rows = list(visited.rows())
    assert len(rows) == len(expected)
    assert {key: (parent, level) for key, parent, level in rows} == expected
    visited.close()


def test_the_table_does_not_grow_beyond_its_limit() -> None:
    visited = Visited(TINY)
    small = visited.bytes_in_table()
    added(visited, 8000)
    assert visited.bytes_in_table() == small
    assert visited.in_file() > visited.count - 1024
    visited.close()


def test_fingerprints_side_by_side_are_found() -> None:
    """Places are told by the lowest bits: these fall behind the last place again and again."""
    visited = Visited(TINY)
    highest = (1 << 31) - 1
    keys = [upper << 31 | highest - lower for upper in range(20) for lower in range(10)]
    for place, key in enumerate(keys):
        assert visited.add(key, place, 1) == NONE
    for place, key in enumerate(keys):
        assert visited.add(key, 0, 2) == 1
        assert visited.parent(key) == place
    visited.close()


@pytest.mark.parametrize("at_most", [0, TINY])
def test_fingerprints_that_share_their_low_bits_do_not_make_the_table_double(at_most: int) -> None:
    """A larger table would have as many in its last place: it needs room behind that only."""
    visited = Visited(at_most)
    small = visited.bytes_in_table()
    keys = [upper << 31 | (1 << 31) - 1 for upper in range(600)]
    for place, key in enumerate(keys):
        assert visited.add(key, place, 1) == NONE
    assert visited.bytes_in_table() == small
    added(visited, 2000)
    assert [visited.parent(key) for key in keys] == list(range(600))
    assert visited.count == len(list(visited.rows()))
    visited.close()


@pytest.mark.parametrize("page", [0, 1, 7, 100])
def test_a_queue_keeps_its_order(page: int) -> None:
    queue = StateQueue(3, page)
    for number in range(50):
        queue.append(vec[i32]([number, -number, 7]), number << 40)
    row = vec[i32]([0, 0, 0])
    for number in range(50):
        assert len(queue) == 50 - number
        assert queue.take(row) == number << 40
        assert list(row) == [number, -number, 7]
    assert not len(queue)
    queue.close()


def test_what_cannot_be_written_stays_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    visited = Visited(TINY)
    expected = added(visited, 4000)
    assert "No such file" in visited.trouble
    assert visited.in_file() == 0
    assert {key: parent for key, (parent, _) in expected.items()} == {
        key: visited.parent(key) for key in expected
    }
    queue = StateQueue(1, 2)
    for number in range(5):
        queue.append(vec[i32]([number]), number)
    assert "No such file" in queue.trouble
    row = vec[i32]([0])
    assert [queue.take(row) for _ in range(5)] == list(range(5))
