"""Deliveries that came before those of messages they had to wait for."""

from __future__ import annotations

import numpy as np

from flexgroup.properties.indexed_history import NONE, IndexedHistory
from flexgroup.properties.kernels.grouping import largest_before
from flexgroup.trace.history import Ints


def positions(run: IndexedHistory) -> Ints:
    """Return, per copy, its delivery row, or a number larger than any if it was not delivered."""
    return np.where(run.copies.row == NONE, len(run.delivered), run.copies.row)


def premature(run: IndexedHistory, latest_before: Ints) -> Ints:
    """Return the copies that were delivered before the latest of those they had to wait for."""
    return np.flatnonzero((run.copies.row != NONE) & (latest_before > run.copies.row))


def earliest(run: IndexedHistory, copies: Ints) -> int:
    return int(copies[np.argmin(run.history.deliveries.time[run.copies.row[copies]])])


def latest_of_same_sender(run: IndexedHistory) -> Ints:
    """Return, per copy, the last position of what its sender multicast before to its destination.

    A sender that is faulty by design may have told everyone another order, so it has none.
    """
    copies = run.copies
    multicast = run.multicast_row[copies.message]
    turn = np.lexsort((multicast, copies.process))
    sender = run.history.multicasts.process[multicast[turn]]
    destination = copies.process[turn]
    group = np.zeros(len(turn), dtype=np.int64)
    changes = (destination[1:] != destination[:-1]) | (sender[1:] != sender[:-1])
    changes |= run.faulty_by_design(sender[1:])
    np.cumsum(changes, out=group[1:])
    latest = np.empty(len(turn), dtype=np.int64)
    latest[turn] = largest_before(group, positions(run)[turn])
    return latest


def premature_line(run: IndexedHistory, letter: str, copy: int, waited_for: str, row: int) -> str:
    """Tell how a process delivered a copy too early; `row` is where it delivered the message that
    the copy had to wait for, or NONE."""
    delivery = run.delivery(int(run.copies.row[copy]))
    told = f"process {delivery.process} delivered {letter} (step {delivery.step})"
    if row == NONE:
        return f"{told} and did not deliver {waited_for}"
    return f"{told} and only then {waited_for} (step {run.delivery(row).step})"
