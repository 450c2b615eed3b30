"""The states that were visited: a table of fingerprints, each with its parent's.

Open addressing over native integers: 18 bytes a place, at most two thirds of the places in
use. The parents are what a path to a state is rebuilt from.
"""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i16, i64

NONE: Final = -1
_FIRST_SIZE: Final = 1 << 10


@final
class Visited:
    """A hash table of fingerprints, which are below 2**62 and not negative."""

    def __init__(self) -> None:
        self.count = 0
        self._size: i64 = _FIRST_SIZE
        self._limit: i64 = _FIRST_SIZE * 2 // 3
        self._keys = _filled(_FIRST_SIZE)
        self._parents = _filled(_FIRST_SIZE)
        self._levels = vec[i16]([0] * _FIRST_SIZE)

    def add(self, key: i64, parent: i64, level: i64) -> i64:
        """Add a state; return NONE if it is new, else the level at which it was found before."""
        slot = self._slot(key)
        if self._keys[slot] == key:
            return i64(self._levels[slot])
        self._put(slot, key, parent, i16(level))
        self.count += 1
        if i64(self.count) > self._limit:
            self._grow()
        return NONE

    def parent(self, key: i64) -> i64:
        return self._parents[self._slot(key)]

    def _slot(self, key: i64) -> i64:
        """The place of a key, or the one where it belongs if it is not there."""
        mask = self._size - 1
        slot = key & mask
        while self._keys[slot] != key and self._keys[slot] != NONE:
            slot = (slot + 1) & mask
        return slot

    def _put(self, slot: i64, key: i64, parent: i64, level: i16) -> None:
        self._keys[slot] = key
        self._parents[slot] = parent
        self._levels[slot] = level

    def _grow(self) -> None:
        keys, parents, levels = self._keys, self._parents, self._levels
        self._size *= 2
        self._limit = self._size * 2 // 3
        self._keys = _filled(self._size)
        self._parents = _filled(self._size)
        fresh_levels = vec[i16](capacity=self._size)
        place: i64 = 0
        while place < self._size:
            fresh_levels = append(fresh_levels, 0)
            place += 1
        self._levels = fresh_levels
        place = 0
        while place < i64(len(keys)):
            key = keys[place]
            if key != NONE:
                self._put(self._slot(key), key, parents[place], levels[place])
            place += 1

    def bytes_used(self) -> int:
        return 18 * int(self._size)

    def rows(self) -> list[tuple[int, int, int]]:
        """List every state with its parent and level, for a snapshot."""
        return [
            (int(key), int(self._parents[place]), int(self._levels[place]))
            for place, key in enumerate(self._keys)
            if key != NONE
        ]


def _filled(size: i64) -> vec[i64]:
    places = vec[i64](capacity=size)
    place: i64 = 0
    while place < size:
        places = append(places, NONE)
        place += 1
    return places
