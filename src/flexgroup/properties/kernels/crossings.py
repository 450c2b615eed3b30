"""What order in real time has to know of a slice of a run to go on behind it.

Slices lie between consistent cuts, so that each process delivered all of a slice before anything of
a later one. Whatever is ordered before a message and lies in an earlier slice reaches it through a
process that delivered something of both sides of the cut. So it suffices to know of each process,
at each cut, the latest multicast among all that it delivered before, and all that is ordered before
that: so many integers as there are processes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from flexgroup.properties.kernels.head_merge import head_merge, leaders, neighbours
from flexgroup.properties.kernels.layered_clocks import LayeredClocks, Table
from flexgroup.trace.history import Ints

NEVER = int(np.iinfo(np.int64).min)
"""Earlier than any time."""

LATER = int(np.iinfo(np.int64).max)

CLOCK_BYTES = 1 << 28
"""What enters a slice may take so many bytes at a time on its way through."""


@dataclass(frozen=True)
class Crossing:
    """How the latest multicasts go through a slice, from process to process."""

    latest: Ints
    """The time of the latest multicast among what each process delivered in the slice, and what is
    ordered before that in the slice."""
    earliest: Ints
    """The earliest first delivery among what is ordered behind all that each process delivered
    before the slice."""
    reaches: Table
    """1 where something that the process of the row delivered before the slice is ordered before
    something that the process of the column delivered in it."""

    def to_ints(self) -> list[int]:
        parts = self.latest, self.earliest, self.reaches.ravel()
        return [int(value) for part in parts for value in part.tolist()]

    @classmethod
    def of_ints(cls, told: Iterable[int], processes: int) -> Self:
        values = np.array(list(told), dtype=np.int64)
        latest, earliest = values[: 2 * processes].reshape(2, processes)
        return cls(latest, earliest, values[2 * processes :].reshape(processes, processes))


def crossing(
    process: Ints,
    message: Ints,
    first: Ints,
    multicast: Ints,
    processes: int,
    clock_bytes: int = CLOCK_BYTES,
) -> Crossing:
    """Return how a slice is crossed, given its deliveries by process and in their order, and of
    each message its first delivery and its multicast, or NEVER."""
    count = len(first)
    leader = leaders(head_merge(process, message, count).components, count)
    sources, targets = neighbours(process, message)
    sources, targets = leader[sources], leader[targets]
    between = sources != targets
    clocks = LayeredClocks(sources[between], targets[between], count)
    begins = np.flatnonzero(np.append(True, process[1:] != process[:-1])[: len(process)])
    ends = np.append(begins[1:], len(process))[: len(begins)] - 1
    heads, tails = clocks.row[leader[message[begins]]], clocks.row[leader[message[ends]]]
    there = process[begins]
    row = clocks.row[leader]
    times = np.full((count, 1), NEVER, dtype=np.int64)
    np.maximum.at(times[:, 0], row, multicast)
    clocks.grow(times)
    latest = np.full(processes, NEVER, dtype=np.int64)
    latest[there] = times[tails, 0]
    firsts = np.full(count, LATER, dtype=np.int64)
    np.minimum.at(firsts, row, first)
    earliest = np.full(processes, LATER, dtype=np.int64)
    reaches = np.zeros((processes, processes), dtype=np.int64)
    block = max(1, clock_bytes // max(1, count))
    for low in range(0, len(there), block):
        entering = there[low : low + block]
        behind = np.zeros((count, len(entering)), dtype=np.int8)
        behind[heads[low : low + block], np.arange(len(entering))] = 1
        clocks.grow(behind)
        reaches[np.ix_(entering, there)] = behind[tails].T
        for place, each in enumerate(entering.tolist()):
            earliest[each] = firsts[behind[:, place] == 1].min()
    return Crossing(latest, earliest, reaches)


def is_too_late(crossings: Iterable[Crossing]) -> bool:
    """Tell whether a message was multicast after the first delivery of one that is ordered behind
    it in a later slice, from all slices of a run in their order."""
    entering = np.empty(0, dtype=np.int64)
    for each in crossings:
        more = max(0, len(each.latest) - len(entering))
        entering = np.append(entering, np.full(more, NEVER, dtype=np.int64))
        here = entering[: len(each.latest)]
        if (here > each.earliest).any():
            return True
        passed = np.where(each.reaches == 1, here[:, None], NEVER).max(axis=0, initial=NEVER)
        entering[: len(here)] = np.maximum(np.maximum(here, each.latest), passed)
    return False
