"""FIFO order (Hadzilacos & Toueg 1994), for any process, correct or not.

If a process multicasts m before m', no destination of both delivers m' unless it has delivered
m before.

So a destination that delivers m' and never m violates it, also in a run that was cut short; one
that delivers m and not yet m' does not. Violations are counted in deliveries that came too
early (m' at one process).
"""

from __future__ import annotations

import numpy as np

from flexgroup.properties.explanations import Letters, at, holds, violated
from flexgroup.properties.indexed_history import NONE, IndexedHistory
from flexgroup.properties.kernels.grouping import largest_before, scattered
from flexgroup.properties.verdict import Verdict
from flexgroup.trace.history import Ints

NAME = "fifo order"


def check(run: IndexedHistory) -> Verdict:
    wrong = premature(run, latest_of_same_sender(run))
    if len(wrong) == 0:
        return holds(run, NAME)
    copy = earliest(run, wrong)
    waited_for = _first_not_delivered_before(run, copy)
    first, second = int(run.copies.message[waited_for]), int(run.copies.message[copy])
    letter = Letters(run, [first, second])
    multicasts = [run.multicast(first), run.multicast(second)]
    row = int(run.copies.row[waited_for])
    deliveries = [run.delivery(int(run.copies.row[copy]))]
    if row != NONE:
        deliveries.append(run.delivery(row))
    lines = [
        letter.let(),
        f"{run.node(multicasts[0].process)} multicast a {at(multicasts[0])}"
        f" and then b {at(multicasts[1])}",
        premature_line(run, letter[second], copy, letter[first], row),
    ]
    return violated(run, NAME, len(wrong), multicasts + deliveries, lines)


def _first_not_delivered_before(run: IndexedHistory, copy: int) -> int:
    copies, senders = run.copies, run.history.multicasts.process
    multicast = run.multicast_row[copies.message]
    candidates = np.flatnonzero(
        (copies.process == copies.process[copy])
        & (senders[multicast] == senders[multicast[copy]])
        & (multicast < multicast[copy])
        & (positions(run) > copies.row[copy])
    )
    return int(candidates[np.argmin(multicast[candidates])])


# Deliveries that came before those of messages they had to wait for, in causal order as well.


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
    return scattered(len(turn), turn, largest_before(group, positions(run)[turn]))


def premature_line(run: IndexedHistory, letter: str, copy: int, waited_for: str, row: int) -> str:
    """Tell how a process delivered a copy too early; `row` is where it delivered the message that
    the copy had to wait for, or NONE."""
    delivery = run.delivery(int(run.copies.row[copy]))
    told = f"{run.node(delivery.process)} delivered {letter} {at(delivery)}"
    if row == NONE:
        return f"{told} and did not deliver {waited_for}"
    return f"{told} and only then {waited_for} {at(run.delivery(row))}"
