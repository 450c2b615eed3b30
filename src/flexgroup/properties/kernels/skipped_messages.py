"""Pairs of processes of which one skipped a message that the other delivered.

A copy is a message at one of its destinations; `row` is where it was delivered, or MISSING.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexgroup.properties.kernels.grouping import grouped, runs
from flexgroup.trace.history import Ints

MISSING = -1

NEVER = np.iinfo(np.int64).max

FIRST_LOOK_BACK = 16
"""How many deliveries the first look back reads; each further one reads twice as many."""


@dataclass(frozen=True)
class Skips:
    """One line per finding; a pair of processes may have two.

    `process` delivered the message `skipped`, which `other` missed; `other` delivered the
    message `overtaking`, which `process` missed or delivered only after `skipped`.
    """

    process: Ints
    other: Ints
    skipped: Ints
    overtaking: Ints


def skips(
    message: Ints, process: Ints, row: Ints, count: int, look_back: int = FIRST_LOOK_BACK
) -> Skips:
    """Compare every two processes on the messages addressed to both, given as copies.

    Copies are sorted by message; messages are numbered below `count`. Finds all pairs in which
    a process skipped a message, provided that the pair agrees on the order of what both
    delivered; of pairs that do not, any may be reported, rightly.

    Only pairs with a missing copy are looked at. For a process q that misses messages, and
    each p that delivered one of them: it suffices to compare the first message that p
    delivered and q missed with the last that both delivered, or with any that q delivered
    and p missed.
    """
    starts = np.searchsorted(message, np.arange(count + 1))
    names, column = np.unique(process, return_inverse=True)
    by_column, column_starts = grouped(column, len(names))
    message_in = np.full(int(row.max(initial=-1)) + 1, MISSING, dtype=np.int64)
    message_in[row[row != MISSING]] = message[row != MISSING]
    columns = _Columns(starts, column, row, len(names))
    one_way: list[Ints] = []
    found = [np.empty((4, 0), dtype=np.int64)]
    for q in range(len(names)):
        own = by_column[column_starts[q] : column_starts[q + 1]]
        first = columns.first_delivered(message[own[row[own] == MISSING]])
        others = np.flatnonzero(first != NEVER)
        if len(others) == 0:
            continue
        one_way.append(np.stack([others, np.full_like(others, q), message_in[first[others]]]))
        delivered = own[row[own] != MISSING]
        last = columns.last_delivered(
            message[delivered[np.argsort(row[delivered])]], others, look_back
        )
        behind = others[last[others] > first[others]]
        other = np.full_like(behind, names[q])
        found.append(
            np.stack([names[behind], other, message_in[first[behind]], message_in[last[behind]]])
        )
    p, q, missed = np.concatenate([np.empty((3, 0), dtype=np.int64), *one_way], axis=1)
    _, there, back = np.intersect1d(
        p * len(names) + q, q * len(names) + p, assume_unique=True, return_indices=True
    )
    found.append(np.stack([names[p[there]], names[q[there]], missed[there], missed[back]]))
    return Skips(*np.concatenate(found, axis=1))


class _Columns:
    """The copies by message, to ask where each process delivered some of the messages."""

    def __init__(self, starts: Ints, column: Ints, row: Ints, count: int) -> None:
        self._starts = starts
        self._column = column
        self._row = row
        self._count = count

    def first_delivered(self, messages: Ints) -> Ints:
        """Return, per process, the first row in which it delivered one of the messages, or
        NEVER."""
        column, row = self._deliveries(messages)
        first = np.full(self._count, NEVER, dtype=np.int64)
        np.minimum.at(first, column, row)
        return first

    def last_delivered(self, messages: Ints, wanted: Ints, look_back: int) -> Ints:
        """Return, for the wanted processes, the row of the last of the messages that it delivered.

        Reads the messages from the last one on, and only as far back as it must.
        """
        last = np.full(self._count, NEVER, dtype=np.int64)
        last[wanted] = MISSING
        end = len(messages)
        while end > 0 and (last == MISSING).any():
            column, row = self._deliveries(messages[max(0, end - look_back) : end])
            open_ = last[column] == MISSING
            np.maximum.at(last, column[open_], row[open_])
            end, look_back = end - look_back, 2 * look_back
        return last

    def _deliveries(self, messages: Ints) -> tuple[Ints, Ints]:
        copies, _ = runs(self._starts[messages], self._starts[messages + 1])
        copies = copies[self._row[copies] != MISSING]
        return self._column[copies], self._row[copies]
