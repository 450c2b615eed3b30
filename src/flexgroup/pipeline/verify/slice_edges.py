"""Whether the margins of slices were wide enough, from what each slice saw at its ends."""

from __future__ import annotations

import numpy as np

from flexgroup.trace.history import Ints

LATER = int(np.iinfo(np.int64).max)
EARLIER = -1
"""Steps that stand for nothing: one later than all, one earlier than all."""

EDGE_WIDTH = 7
"""Slice and process; the first step of the slice at the process; that without the margin which the
slice before sees; the last step without the margin which the slice behind sees; the last step; and
the last step of the cut at the slice's end."""


def reach(edges: Ints) -> int:
    """Return 0 if each slice saw all that it had to, from lines of EDGE_WIDTH; else over how many
    slices, at least, a process delivered messages in another order than that of slices.

    At the beginning of each slice and for each process: what lies before the margin must have
    been delivered before what lies behind the cut; and the cut as the slice before it found it
    must end before what that slice did not see.
    """
    slices = int(edges[:, 0].max()) + 1
    _, process = np.unique(edges[:, 1], return_inverse=True)
    shape = int(process.max()) + 1, slices

    def table(column: int, nothing: int) -> Ints:
        # Two more slices on both sides, in which nothing is.
        filled = np.full((shape[0], slices + 4), nothing, dtype=np.int64)
        filled[process, edges[:, 0] + 2] = edges[:, column]
        return filled

    low, low_inside = table(2, LATER), table(3, LATER)
    high_inside, high, reached = table(4, EARLIER), table(5, EARLIER), table(6, EARLIER)
    highest = np.maximum.accumulate(high, axis=1)
    lowest = np.minimum.accumulate(low[:, ::-1], axis=1)[:, ::-1]
    own = np.arange(slices) + 2
    before_margin = np.maximum(highest[:, own - 2], high_inside[:, own - 1])
    unseen = np.minimum(low_inside[:, own + 1], lowest[:, own + 2])
    if not ((before_margin >= lowest[:, own]) | (reached[:, own] >= unseen)).any():
        return 0
    distances = [
        # The first slice with a step that comes after the first one of this slice.
        int((own - np.searchsorted(highest[at], low[at, own])).max())
        for at in range(shape[0])
    ]
    return max(1, *distances)
