"""The states that were visited: a table of fingerprints, each with its parent's.

Open addressing over native integers: 18 bytes a place, at most two thirds of the places in
use. The parents are what a path to a state is rebuilt from. The place of a fingerprint grows with
its turned value (`spilled.turned`), so the table is all but sorted. Where it may not grow any more,
the states of earlier levels go to a sorted file, and it goes on with the latest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i16, i64

from flexgroup.worlds.explorer.spilled import (
    NONE,
    SpilledStates,
    key_in,
    level_in,
    merged,
    parent_in,
    turned,
)

UNKNOWN: Final = -2
"""What stands for the parent of a state that was not visited."""

_A_PLACE: Final = 18
"""The bytes of a place."""

_FIRST_BITS: Final = 10
_HALF: Final = 31
_LOW: Final = (1 << 31) - 1
_BEHIND: Final = 256
"""Places behind the last one that a fingerprint can belong to, unless more are needed there."""


@final
class Visited:
    """A hash table of fingerprints, which are below 2**62 and not negative."""

    def __init__(self, at_most: int = 0) -> None:
        self.count = 0
        self.at_most = at_most
        """The most bytes that the table may have before states go to a file; 0 for no limit."""
        self.trouble = ""
        """Why states could not be written to a file; they stay in memory then."""
        self._spilled: SpilledStates | None = None
        self._held: i64 = 0
        self._bits: i64 = _FIRST_BITS
        self._behind: i64 = _BEHIND
        self._begin()

    def _begin(self) -> None:
        self._limit: i64 = (i64(1) << self._bits) * 2 // 3
        self._shift: i64 = _HALF - self._bits
        places = (i64(1) << self._bits) + self._behind
        self._last: i64 = places - 1
        """The last place is always free."""
        self._keys = _filled(places)
        self._parents = _filled(places)
        self._levels = vec[i16](capacity=places)
        place: i64 = 0
        while place < places:
            self._levels = append(self._levels, 0)
            place += 1

    def add(self, key: i64, parent: i64, level: i64) -> i64:
        """Add a state; return NONE if it is new, else the level at which it was found before."""
        slot = self._slot(key)
        if self._keys[slot] == key:
            return i64(self._levels[slot])
        spilled = self._spilled
        if spilled is not None:
            known = spilled.level_of(key)
            if known != NONE:
                return known
        self._put(slot, key, parent, i16(level))
        self.count += 1
        self._held += 1
        if slot == self._last:
            # A larger table may be as full there, if fingerprints share their low bits.
            self._behind *= 2
            self._spread()
        elif self._held > self._limit:
            self._make_room()
        return NONE

    def parent(self, key: i64) -> i64:
        """Return the parent of a state: NONE for the first one, UNKNOWN for one not visited."""
        slot = self._slot(key)
        if self._keys[slot] == key:
            return self._parents[slot]
        spilled = self._spilled
        if spilled is not None and spilled.level_of(key) != NONE:
            return spilled.parent_of(key)
        return UNKNOWN

    def _slot(self, key: i64) -> i64:
        """The place of a key, or the one where it belongs if it is not there."""
        slot = (key & _LOW) >> self._shift
        while self._keys[slot] != key and self._keys[slot] != NONE:
            slot += 1
        return slot

    def _put(self, slot: i64, key: i64, parent: i64, level: i16) -> None:
        self._keys[slot] = key
        self._parents[slot] = parent
        self._levels[slot] = level

    def _make_room(self) -> None:
        larger = 2 * self.bytes_in_table()
        if self.at_most == 0 or larger <= self.at_most or self.trouble:
            self._grow()
            return
        try:
            self._spill()
        except OSError as error:
            self.trouble = error.strerror or str(error)
            self._grow()

    def _grow(self) -> None:
        self._bits += 1
        self._spread()

    def _spread(self) -> None:
        """Put the states into a new table. No more of them end up behind the places that
        fingerprints belong to than in a smaller one, so the last place stays free."""
        keys, parents, levels = self._keys, self._parents, self._levels
        self._begin()
        place: i64 = 0
        while place < i64(len(keys)):
            key = keys[place]
            if key != NONE:
                self._put(self._slot(key), key, parents[place], levels[place])
            place += 1

    # States that go to a file.

    def _spill(self) -> None:
        """Write the states of earlier levels to the file, and keep the latest."""
        below = self._below()
        self._sort()
        spilled = merged(self._spilled, self._keys, self._parents, self._levels, below, self.count)
        if self._spilled is not None:
            self._spilled.close()
        self._spilled = spilled
        # What is taken out and put back ends in front of what is not looked at yet.
        keys, parents, levels = self._keys, self._parents, self._levels
        self._held = 0
        place: i64 = 0
        while place < self._last:
            key = keys[place]
            if key != NONE:
                keys[place] = NONE
                if i64(levels[place]) >= below:
                    self._put(self._slot(key), key, parents[place], levels[place])
                    self._held += 1
            place += 1

    def _below(self) -> i64:
        """Return the first level to keep, such that the table is at most half as full as now."""
        counts: list[int] = []
        place: i64 = 0
        while place < self._last:
            if self._keys[place] != NONE:
                level = int(self._levels[place])
                while len(counts) <= level:
                    counts.append(0)
                counts[level] += 1
            place += 1
        kept = 0
        below = len(counts)
        while below and 2 * (kept + counts[below - 1]) <= int(self._limit):
            below -= 1
            kept += counts[below]
        return i64(below)

    def _sort(self) -> None:
        """Sort states that stand side by side; those with a free place between are in order."""
        keys, parents, levels = self._keys, self._parents, self._levels
        place: i64 = 1
        while place < self._last:
            key = keys[place]
            to = place
            if key != NONE:
                wanted = turned(key)
                while to > 0 and keys[to - 1] != NONE and turned(keys[to - 1]) > wanted:
                    to -= 1
            if to != place:
                parent, level = parents[place], levels[place]
                at = place
                while at > to:
                    self._put(at, keys[at - 1], parents[at - 1], levels[at - 1])
                    at -= 1
                self._put(to, key, parent, level)
            place += 1

    def bytes_in_table(self) -> int:
        return _A_PLACE << int(self._bits)

    def bytes_used(self) -> int:
        """The bytes in memory."""
        spilled = self._spilled
        return self.bytes_in_table() + (spilled.bytes_used() if spilled is not None else 0)

    def in_file(self) -> int:
        """Return how many states are not in memory."""
        return self._spilled.count if self._spilled is not None else 0

    def rows(self) -> Iterator[tuple[int, int, int]]:
        """Every state with its parent and level, for a snapshot."""
        spilled = self._spilled
        if spilled is not None:
            for number in range(spilled.blocks()):
                block = spilled.block(number)
                for place in range(int(spilled.held_by(number))):
                    yield (
                        int(key_in(block, place)),
                        int(parent_in(block, place)),
                        int(level_in(block, place)),
                    )
        for place in range(int(self._last)):
            key = int(self._keys[place])
            if key != NONE:
                yield key, int(self._parents[place]), int(self._levels[place])

    def close(self) -> None:
        """Let go of the file."""
        if self._spilled is not None:
            self._spilled.close()
            self._spilled = None


def _filled(size: i64) -> vec[i64]:
    places = vec[i64](capacity=size)
    place: i64 = 0
    while place < size:
        places = append(places, NONE)
        place += 1
    return places
