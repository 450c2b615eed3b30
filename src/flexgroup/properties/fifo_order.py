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
from flexgroup.properties.premature_deliveries import (
    earliest,
    latest_of_same_sender,
    positions,
    premature,
    premature_line,
)
from flexgroup.properties.verdict import Verdict

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
        f"process {multicasts[0].process} multicast a {at(multicasts[0])}"
        f" and then b {at(multicasts[1])}",
        premature_line(run, letter[second], copy, letter[first], row),
    ]
    return violated(NAME, len(wrong), multicasts + deliveries, lines)


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
