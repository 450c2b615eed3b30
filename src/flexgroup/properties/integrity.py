"""Uniform integrity (Hadzilacos & Toueg 1994).

Every process delivers a message at most once, and only if it is a destination of the message
and the message was multicast.

"Was multicast" means anywhere in the run: a trace has no order between the steps of different
processes. Violations are counted in deliveries.

Nobody knows what a process that is faulty by design multicast, and to whom: it may have told each
destination something else. Of its messages only repeated deliveries are wrong.

The last events of a process may be lost: it was killed before they were written. Then nobody can
tell whether it multicast a message that it had not multicast before. If such a message was
delivered, and nothing is wrong besides, the verdict is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from flexgroup.properties.explanations import Letters, at, holds, lost_events, plural, violated
from flexgroup.properties.indexed_history import NONE, Flags, IndexedHistory
from flexgroup.properties.verdict import Outcome, Verdict

NAME = "integrity"

DUPLICATE = "duplicate"
NEVER_MULTICAST = "never multicast"
STRAY = "at no destination"
KINDS = (DUPLICATE, NEVER_MULTICAST, STRAY)

UNRECORDED = "perhaps never multicast"
"""The kind of deliveries of messages whose multicast may be among events that are lost."""


def wrong_deliveries(run: IndexedHistory) -> dict[str, Flags]:
    """Tell, per kind of error, which delivery rows are wrong in that way, and which may be."""
    of_faulty = run.of_faulty[run.delivered]
    is_unrecorded = run.unrecorded[run.delivered] & ~of_faulty
    unknown = (run.multicast_row[run.delivered] == NONE) | of_faulty
    never_multicast = unknown & ~is_unrecorded & ~of_faulty
    return {
        DUPLICATE: run.repeated & ~never_multicast,
        NEVER_MULTICAST: never_multicast,
        STRAY: ~(run.expected | run.repeated | unknown),
        UNRECORDED: is_unrecorded & ~run.repeated,
    }


def check(run: IndexedHistory, totals: Mapping[str, int] | None = None) -> Verdict:
    """Check a run; if the history is only a part of it, `totals` are its errors by kind."""
    deliveries = run.history.deliveries
    flags = wrong_deliveries(run)
    counts = totals or {kind: int(np.count_nonzero(rows)) for kind, rows in flags.items()}
    wrong = np.flatnonzero(np.any([flags[kind] for kind in KINDS], axis=0))
    if len(wrong) == 0:
        return _perhaps(run, flags[UNRECORDED], counts.get(UNRECORDED, 0))
    row = int(wrong[np.argmin(deliveries.time[wrong])])
    message = int(run.delivered[row])
    delivery = run.delivery(row)
    if flags[NEVER_MULTICAST][row]:
        witness = [delivery]
        reason = f"{run.node(delivery.process)} delivered a {at(delivery)}, which nobody multicast"
    elif flags[DUPLICATE][row]:
        same = (run.delivered[:row] == message) & (deliveries.process[:row] == delivery.process)
        before = run.delivery(int(np.flatnonzero(same)[0]))
        witness = [before, delivery]
        reason = f"{run.node(delivery.process)} delivered a {at(before)} and again {at(delivery)}"
    else:
        multicast = run.multicast(message)
        witness = [multicast, delivery]
        reason = (
            f"{run.node(delivery.process)} delivered a {at(delivery)} and is not a destination"
            f" of it: {run.node(multicast.process)} multicast it {at(multicast)}"
        )
    told = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts.get(kind))
    lines = ["wrong deliveries: " + told, Letters(run, [message]).let(), reason]
    return violated(run, NAME, sum(counts.get(kind, 0) for kind in KINDS), witness, lines)


def _perhaps(run: IndexedHistory, unrecorded: Flags, count: int) -> Verdict:
    rows = np.flatnonzero(unrecorded)
    if len(rows) == 0:
        return holds(run, NAME)
    history = run.history
    first = run.delivery(int(rows[np.argmin(history.deliveries.time[rows])]))
    explanation = (
        f"{lost_events(history)}, and {plural(count, 'delivery')} may be of messages that"
        f" were multicast then, the first of message {run.name_of_identity(first.message)} by"
        f" {run.node(first.process)} {at(first)}"
    )
    return Verdict(NAME, Outcome.UNKNOWN, 0, None, explanation)
