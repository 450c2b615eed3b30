"""Causal order in windows of a run, which are checked at the same time and know of nothing else.

A slice has several parts of a timeline. Its window has, of every process, the events of the slice
and of the last part before it, and in it the plain-Python property is asked. What it says about
deliveries of the slice is what it would say about the whole run, unless one of these is seen:

- A delivery of the slice is of a message that was multicast, but not in the window: it is *unseen*.
- A delivery came *back in time*: it was before the last part of the slice, and its multicast in it.
- A copy is *missing*: its message was multicast in the window, before the last part of the slice,
  and not delivered in it, though the destination delivered something behind the slice.
- Messages of the window lie on loops of causes, or behind them.

For let m precede m', both go to d, and d deliver m' in the slice without having delivered m before.
No delivery before the end of a slice is of a message that was multicast behind it, so all that
precedes m' was multicast before the end of this one; and no delivery before a window is of a
message that was multicast in it. So if m was multicast in the window, then a chain of causes from
m to m' lies in it, and so does the delivery of m by d, if there was any before the slice ended. And
if m was multicast before the window: d delivered m later, in whose window m was not; or never, and
it was missing in the last window that had its multicast.

Deliveries of what was never multicast are unseen as well, and mean nothing. Whoever knows how many
of them there are in the run can tell whether there are others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.verify.layout import Layout
from flexgroup.pipeline.verify.notes import Note
from flexgroup.pipeline.verify.timeline import Timeline
from flexgroup.properties import causal_order
from flexgroup.properties.indexed_history import NONE, IndexedHistory
from flexgroup.trace.history import Ints
from flexgroup.trace.schema import DELIVER, MULTICAST

PARTS_A_SLICE = 8
BEFORE = 1
"""How many parts of the slice before it the window of a slice has."""

MOST_BYTES = 1 << 27
"""How large a packed window may be; a usual one has less than 20 MiB, and checking it takes twenty
times as much memory."""

IN_WINDOW = {kind: f"{kind} in window" for kind in (MULTICAST, DELIVER)}
"""The kinds of packed rows that hold the events of windows."""

TOO_EARLY = "delivered too early"
"""What a note is about that counts deliveries: its rank is time, message, process and step of the
first."""

UNSEEN, NEVER_MULTICAST = "unseen", "never multicast"
"""What notes are about that count deliveries. Where they come to the same, nothing was unseen that
matters."""

UNCLEAR = "unclear"
"""What a note is about that counts what a window cannot judge."""

SEEN_IN_WINDOWS = (TOO_EARLY, UNSEEN, NEVER_MULTICAST, UNCLEAR)


def is_unclear(totals: Mapping[str, Mapping[str, int]]) -> bool:
    """Tell whether windows cannot judge a run about which so much is noted."""
    unseen, never = (sum(totals.get(about, {}).values()) for about in (UNSEEN, NEVER_MULTICAST))
    return bool(totals.get(UNCLEAR)) or unseen > never


@dataclass(frozen=True)
class CausalRun:
    """A run that is checked for causal order, and where it is cut."""

    layout: Layout
    timeline: Timeline
    place: int
    """The place of its first slice among those of all runs."""

    @property
    def slices(self) -> int:
        return -(-self.timeline.parts // PARTS_A_SLICE)

    def windows(self, process: Ints, step: Ints) -> tuple[Ints, Ints]:
        """Return, for each window that some of these events are in, the number of the event and
        that of the slice."""
        slice_, place = np.divmod(self.timeline.part(process, step), PARTS_A_SLICE)
        is_before = (place >= PARTS_A_SLICE - BEFORE) & (slice_ < self.slices - 1)
        before = np.flatnonzero(is_before)
        events = np.concatenate([np.arange(len(slice_)), before])
        return events, np.concatenate([slice_, slice_[before] + 1])


def cannot_be_cut(run: str, size: int, most: int) -> UsageError:
    """Return the error about a run of which so many bytes would have to be in one piece."""
    return UsageError(
        f"causal order of run '{run}' cannot be checked: its events cannot be told apart by"
        f" their times, so that {size >> 20} MiB of them would have to be in one piece, and"
        f" {most >> 20} fit; record times, or leave the property out with --property"
    )


def never_multicast(number: int, run: IndexedHistory) -> Iterator[Note]:
    """Yield how many deliveries there are of messages, all about which is here, that were never
    multicast."""
    rows = int(np.count_nonzero(run.multicast_row[run.delivered] == NONE))
    if rows:
        yield Note(number, NEVER_MULTICAST, "", rows, [], [])


def check_window(causal: CausalRun, slice_: int, run: IndexedHistory) -> Iterator[Note]:
    """Yield what the window of a slice shows about the deliveries of the slice."""
    number, timeline = causal.layout.plan.number, causal.timeline
    wrong, order = causal_order.too_early(run)
    deliveries, copies = run.history.deliveries, run.copies
    first = slice_ * PARTS_A_SLICE
    last, end = first + PARTS_A_SLICE - BEFORE, first + PARTS_A_SLICE
    own = timeline.is_behind(first, deliveries.process, deliveries.step)
    wrong = wrong[own[copies.row[wrong]]]
    if len(wrong):
        yield _too_early(number, run, wrong)
    multicast_row = run.multicast_row[run.delivered]
    unseen = int(np.count_nonzero(own & (multicast_row == NONE)))
    if unseen:
        yield Note(number, UNSEEN, "", unseen, [], [])
    multicasts = run.history.multicasts
    late = timeline.is_behind(last, multicasts.process, multicasts.step)
    hasty = ~timeline.is_behind(last, deliveries.process, deliveries.step)
    known = np.flatnonzero(multicast_row != NONE)
    back_in_time = hasty[known] & late[multicast_row[known]]
    undelivered = np.flatnonzero(copies.row == NONE)
    undelivered = undelivered[~late[run.multicast_row[copies.message[undelivered]]]]
    missing = timeline.hears_behind(end, copies.process[undelivered])
    on_loops = run.message_count - len(order)
    unclear = int(np.count_nonzero(back_in_time)) + int(np.count_nonzero(missing)) + on_loops
    if unclear:
        yield Note(number, UNCLEAR, "", unclear, [], [])


def _too_early(number: int, run: IndexedHistory, wrong: Ints) -> Note:
    deliveries, copies = run.history.deliveries, run.copies
    rows = copies.row[wrong]
    named = deliveries.time[rows], run.identities[copies.message[wrong]], copies.process[wrong]
    first = np.lexsort(named[::-1])[0]
    rank = [*(int(column[first]) for column in named), int(deliveries.step[rows[first]])]
    return Note(number, TOO_EARLY, "", len(wrong), rank, [])
