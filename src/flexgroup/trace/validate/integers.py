"""Sets of natural numbers that are filled by the million and mostly have no holes.

As long as its numbers are dense, a set takes a bit for each number up to the largest; from then on
it takes eight bytes a number.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from flexgroup.trace.history import Ints, no_ints

Flags = NDArray[np.bool_]

_SPARSE = 128
"""Where a number takes more bits than this, the numbers themselves take less room."""

_ALWAYS = 1 << 16
"""The number of bits that a set may have however few its numbers are."""


class IntegerSet:
    def __init__(self) -> None:
        self.count = 0
        self.largest = -1
        self._bits: NDArray[np.uint8] | None = np.zeros(8, dtype=np.uint8)
        self._sparse: Ints = no_ints()

    def add(self, numbers: Ints) -> Flags:
        """Add numbers in ascending order, and return which were there already or come twice."""
        known = self.holds(numbers)
        known[1:] |= numbers[1:] == numbers[:-1]
        new = numbers[~known]
        if len(new):
            self.count += len(new)
            self.largest = max(self.largest, int(new[-1]))
            self._keep(new)
        return known

    def holds(self, numbers: Ints) -> Flags:
        if self._bits is not None:
            inside = (numbers >= 0) & (numbers < 8 * len(self._bits))
            place = np.where(inside, numbers, 0)
            found: Flags = inside & ((self._bits[place >> 3] >> (place & 7)) & 1).astype(np.bool_)
            return found
        place = np.minimum(np.searchsorted(self._sparse, numbers), len(self._sparse) - 1)
        found = self._sparse[place] == numbers
        return found

    def first_missing(self) -> int | None:
        """Return the smallest number that is not there although a larger one is."""
        if self.count == self.largest + 1:
            return None
        expected = 0
        for part in self._ascending():
            gap = np.flatnonzero(part != np.arange(expected, expected + len(part)))
            if len(gap):
                return expected + int(gap[0])
            expected += len(part)
        return None

    def _keep(self, new: Ints) -> None:
        if self._bits is not None and self.largest >= max(_ALWAYS, _SPARSE * self.count):
            self._sparse = np.concatenate(list(self._ascending()) or [no_ints()])
            self._bits = None
        if self._bits is None:
            # Both are in order, and a stable sort merges what is in order.
            self._sparse = np.sort(np.concatenate([self._sparse, new]), kind="stable")
            return
        if self.largest >= 8 * len(self._bits):
            room = np.zeros(max(2 * len(self._bits), self.largest // 8 + 1), dtype=np.uint8)
            room[: len(self._bits)] = self._bits
            self._bits = room
        np.bitwise_or.at(self._bits, new >> 3, (1 << (new & 7)).astype(np.uint8))

    def _ascending(self) -> Iterator[Ints]:
        """Yield all numbers in ascending order, in parts."""
        if self._bits is None:
            yield self._sparse
            return
        for start in range(0, len(self._bits), 1 << 16):
            bits = np.unpackbits(self._bits[start : start + (1 << 16)], bitorder="little")
            part = np.flatnonzero(bits) + 8 * start
            if len(part):
                yield part
