"""What pairs of processes tell about messages that one of them skipped, from some of the messages.

A copy is a message at one of its destinations, with the step at which it was delivered there, or
MISSING; copies are sorted by message. What is found of several parts of the messages can be
merged: the least and the largest of the least and the largest.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flexgroup.properties.kernels.grouping import lookup, runs
from flexgroup.trace.history import Ints, by_pairs

MISSING = -1

PAIRS_AT_ONCE = 1 << 21


def first_skipped(message: Ints, process: Ints, step: Ints) -> tuple[Ints, Ints]:
    """Return two copies per line: of a message that the process of the one delivered and that of
    the other missed, and no other such message came earlier at the one."""
    one, other = _pairs(message, step, np.flatnonzero(step == MISSING), process, None, first=True)
    return one, other


def last_shared(
    message: Ints, process: Ints, step: Ints, wanted: tuple[Ints, Ints]
) -> tuple[Ints, Ints]:
    """Return two copies per line: of a message that both processes delivered, and no other such
    message came later at the one. Only of the wanted pairs of processes."""
    chosen = np.flatnonzero((step != MISSING) & np.isin(process, wanted[1]))
    return _pairs(message, step, chosen, process, wanted, first=False)


def _pairs(
    message: Ints,
    step: Ints,
    others: Ints,
    process: Ints,
    wanted: tuple[Ints, Ints] | None,
    first: bool,
) -> tuple[Ints, Ints]:
    width = 1 + int(process.max(initial=0))
    if wanted is not None:
        width = max(width, *(1 + int(end.max(initial=0)) for end in wanted))
        keys = np.unique(wanted[0] * width + wanted[1])
    found = np.empty((2, 0), dtype=np.int64)
    for one, other in _of_same_message(message, others):
        delivered = (step[one] != MISSING) & (one != other)
        one, other = one[delivered], other[delivered]
        if wanted is not None:
            chosen = lookup(keys, process[one] * width + process[other])[1]
            one, other = one[chosen], other[chosen]
        both = np.concatenate([found, np.stack([one, other])], axis=1)
        key = process[both[0]] * width + process[both[1]]
        order = by_pairs(key, step[both[0]])
        ends = np.diff(key[order], prepend=-1) if first else np.diff(key[order], append=-1)
        found = both[:, order[np.flatnonzero(ends)]]
    return found[0], found[1]


def _of_same_message(message: Ints, others: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield, for each of these copies, all copies of the same message beside it, some at a time."""
    starts = np.searchsorted(message, message[others])
    ends = np.searchsorted(message, message[others], side="right")
    begin = 0
    so_far = np.cumsum(ends - starts)
    while begin < len(others):
        done = int(so_far[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(so_far, done + PAIRS_AT_ONCE, side="right")))
        one, owner = runs(starts[begin:end], ends[begin:end])
        yield one, others[begin:end][owner]
        begin = end
