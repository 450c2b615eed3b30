"""Consistent cuts: sets of messages that hold everything delivered before any of them.

No cycle of the relation "some process delivered the one and then the other" crosses a consistent
cut: its messages precede each other, so a cut has all of them or none. So a long run can be
checked in slices between cuts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flexgroup.properties.kernels.grouping import runs
from flexgroup.trace.history import Ints, in_order

NOTHING = -1
"""The frontier at a process where the cut holds nothing."""


def smallest_cut(
    process: Ints, message: Ints, inside: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], Ints]:
    """Return the smallest consistent cut that holds the messages inside, and its frontier.

    Rows are deliveries, sorted by process and, within a process, in the order of delivery;
    `inside` has a flag per message. The frontier is, per process, the last row of the cut. Linear
    in rows, and beyond reading them a few times only in what lies near the cut.
    """
    count = int(process.max(initial=-1)) + 1
    cut = inside.copy()
    row_inside = cut[message]
    frontier = np.full(count, NOTHING, dtype=np.int64)
    rows = np.flatnonzero(row_inside)
    # Rows ascend, so that the last one of each process stays.
    frontier[process[rows]] = rows
    # The cut can only grow by messages that lie outside, all of them behind a first one.
    outside = np.flatnonzero(~row_inside)
    below = outside[outside <= frontier[process[outside]]]
    if len(below) == 0:
        return cut, frontier
    outside = outside[in_order(message[outside])]
    while len(below):
        added = np.unique(message[below])
        cut[added] = True
        starts = np.searchsorted(message[outside], added)
        ends = np.searchsorted(message[outside], added, side="right")
        at, _ = runs(starts, ends)
        reached = frontier.copy()
        np.maximum.at(reached, process[outside[at]], outside[at])
        # A process that the cut reaches for the first time begins at its first row.
        firsts = np.searchsorted(process, np.arange(count))
        begins = np.where(frontier == NOTHING, firsts, frontier + 1)
        between, _ = runs(begins, np.where(reached == NOTHING, begins, reached + 1))
        frontier = reached
        below = between[~cut[message[between]]]
    return cut, frontier
