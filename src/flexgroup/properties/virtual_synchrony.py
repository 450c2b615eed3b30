"""Virtual synchrony (Birman & Joseph 1987, in the form of Chockler, Keidar & Vitenberg 2001).

If two processes install the same view v' next after the same view v, any message that one of them
delivers in v and that is addressed to the other is delivered in v by the other, too.

A process is in v from the row that installs it to its next view row; views are the same if their
numbers and members are. A crash ends the view a process is in: what it installs after it recovered
comes after no view. A message that was never multicast is addressed to nobody. Violations are
counted in missing deliveries (process, pair of views, message). Unknown if the trace has no views.
What a process did in a view that it has left cannot change, so a run that was cut short is
decided as any other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from flexgroup.properties.explanations import Letters, at, plural, shown, violated
from flexgroup.properties.indexed_history import NONE, Flags, IndexedHistory
from flexgroup.properties.kernels.grouping import distinct, lookup, runs
from flexgroup.properties.verdict import Outcome, Verdict
from flexgroup.trace.history import Ints

NAME = "virtual synchrony"


@dataclass(frozen=True)
class Stays:
    """The times that processes spent in a view until they installed the next, by process and step.

    `change` numbers the pairs of views: stays with the same number must see the same messages.
    """

    process: Ints
    entered: Ints
    left: Ints
    change: Ints

    def chosen(self, which: Flags) -> Stays:
        return Stays(self.process[which], self.entered[which], self.left[which], self.change[which])


@dataclass(frozen=True)
class Missed:
    """What was delivered between two views by one process and not by another that had to."""

    stays: Stays
    row: Ints
    stay: Ints
    """The first deliveries that fall into a stay, and the stay of each."""
    lines: Ints
    """Each has a change of views (its number), a message, and the process that missed it."""
    causes: Ints
    """The deliveries that others missed, as places in `row`; sorted by process and step."""


def check(run: IndexedHistory) -> Verdict:
    if len(run.history.views.process) == 0:
        return Verdict(NAME, Outcome.UNKNOWN, 0, None, "the trace has no views")
    missed = missing(run)
    if len(missed.lines) == 0:
        return kept(len(missed.row), len(missed.stays.process))
    return violation(run, missed)


def kept(deliveries: int, changes: int) -> Verdict:
    """Return the verdict on a run in which nothing is missing, of so many deliveries."""
    before = f"{plural(deliveries, 'delivery')} before {plural(changes, 'change')} of view"
    return Verdict(NAME, Outcome.HOLDS, 0, None, f"checked {before}")


def missing(run: IndexedHistory, stays: Stays | None = None) -> Missed:
    """Return what is missing in these stays, or in all, of the messages that the history tells of:
    it may have only some of those of the run, as long as it has all views and crashes."""
    stays = stays_in_views(run) if stays is None else stays
    row, stay = _deliveries_in(run, stays)
    nothing = np.empty(0, dtype=np.int64)
    missed = Missed(stays, row, stay, _missing(run, stays, row, stay), nothing)
    return with_causes(run, missed)


def with_causes(run: IndexedHistory, missed: Missed) -> Missed:
    """Return what was missed with the deliveries that tell so."""
    key = missed.stays.change[missed.stay] * run.message_count + run.delivered[missed.row]
    wanted = missed.lines[:, 0] * run.message_count + missed.lines[:, 1]
    return replace(missed, causes=np.flatnonzero(np.isin(key, wanted)))


def stays_in_views(run: IndexedHistory) -> Stays:
    """Return pairs of view rows that follow each other at a process with no crash between them."""
    views, crashes = run.history.views, run.history.crashes
    process = np.concatenate([views.process, crashes.process])
    step = np.concatenate([views.step, crashes.step])
    view = np.concatenate([views.view, np.full(len(crashes.process), NONE)])
    order = np.lexsort((step, process))
    process, step, view = process[order], step[order], view[order]
    first = np.flatnonzero((process[1:] == process[:-1]) & (view[1:] != NONE) & (view[:-1] != NONE))
    pair = view[first] * len(views.distinct) + view[first + 1]
    return Stays(process[first], step[first], step[first + 1], pair)


def _deliveries_in(run: IndexedHistory, stays: Stays) -> tuple[Ints, Ints]:
    """Return the first deliveries that fall into a stay, as rows, and the stay of each."""
    deliveries, row = run.history.deliveries, run.queues.row
    steps = 1 + max(int(deliveries.step.max(initial=0)), int(stays.left.max(initial=0)))
    at_step = deliveries.process[row] * steps + deliveries.step[row]
    stay = np.searchsorted(stays.process * steps + stays.entered, at_step) - 1
    inside = stay >= 0
    row, stay, at_step = row[inside], stay[inside], at_step[inside]
    inside = at_step < (stays.process * steps + stays.left)[stay]
    return row[inside], stay[inside]


def _missing(run: IndexedHistory, stays: Stays, row: Ints, stay: Ints) -> Ints:
    """Return what was delivered between two views by one process and not by another that had to.

    Each line has a change of views (its number), a message, and the process that missed it.
    """
    width = 1 + max(
        int(part.max(initial=0))
        for part in (run.copies.process, stays.process, run.history.deliveries.process)
    )
    count = max(run.message_count, 1)
    took_part = distinct(stays.change * width + stays.process)
    due = distinct(stays.change[stay] * count + run.delivered[row])
    change, message = np.divmod(due, count)
    start, end = np.searchsorted(run.copies.message, [message, message + 1])
    copy, owner = runs(start, end)
    process = run.copies.process[copy]
    _, concerned = lookup(took_part, change[owner] * width + process)
    owner, process = owner[concerned], process[concerned]
    place = np.searchsorted(due, stays.change[stay] * count + run.delivered[row])
    done = distinct(place * width + run.history.deliveries.process[row])
    _, delivered = lookup(done, owner * width + process)
    owner, process = owner[~delivered], process[~delivered]
    return np.stack([change[owner], message[owner], process], axis=1)


def violation(run: IndexedHistory, missed: Missed) -> Verdict:
    """Return the verdict that is explained by the earliest delivery that another process misses."""
    deliveries, stays, row, stay = run.history.deliveries, missed.stays, missed.row, missed.stay
    cause = int(missed.causes[np.argmin(deliveries.time[row[missed.causes]])])
    lines_of = missed.lines[
        (missed.lines[:, 0] == stays.change[stay[cause]])
        & (missed.lines[:, 1] == run.delivered[row[cause]])
    ]
    change, message, process = (int(value) for value in lines_of[0])
    delivery = run.delivery(int(row[cause]))
    before, after = divmod(change, len(run.history.views.distinct))
    other = int(np.flatnonzero((stays.change == change) & (stays.process == process))[0])
    witness = [delivery]
    late = run.row_at(np.array([message]), np.array([process]))[0]
    last = f"{run.node(process)} installed v {_at(stays.entered[other])} and then w"
    last += f" {_at(stays.left[other])} and did not deliver a between them"
    if late != NONE:
        witness.append(run.delivery(int(late)))
        last += f", but outside them {at(witness[1])}"
    lines = [
        f"{Letters(run, [message]).let()}, v = {_view(run, before)}, w = {_view(run, after)}",
        f"{run.node(delivery.process)} installed v {_at(stays.entered[stay[cause]])},"
        f" delivered a {at(delivery)} and then installed w {_at(stays.left[stay[cause]])}",
        last,
    ]
    return violated(run, NAME, len(missed.lines), witness, lines)


def _at(step: np.int64) -> str:
    return f"(step {step})"


def _view(run: IndexedHistory, number: int) -> str:
    view = run.history.views.distinct[number]
    return f"view {view.number} of {shown(run.history, view.members)}"
