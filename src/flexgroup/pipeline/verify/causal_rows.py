"""What a part of the messages has to do with causal order, on the way to slices of the run.

A slice has several parts of a timeline. Whoever checks it alone begins one part earlier, with
nothing known of the past. That finds everything if no message is *out of sight*, and none came
*back in time*:

- A copy is out of sight if the message was multicast before what the checker of some slice sees,
  and its destination delivered something in that slice or later without having delivered it.
- A copy came back in time if it was delivered before a cut, and multicast behind it.

For if m precedes m' and both go to d, and m' is of this slice: without copies back in time, all
that precedes m' lies before the end of the slice, each chain of causes from a message that the
checker sees lies within what it sees, and d delivered m' in the slice or later. So if the checker
does not see m, then d had delivered m before the slice, or it delivered nothing in it and later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flexgroup.pipeline.verify.timeline import Timeline
from flexgroup.properties.indexed_history import NONE, IndexedHistory
from flexgroup.properties.kernels.causal_graph import Copies, Heard, Sent
from flexgroup.properties.kernels.causal_slices import NEVER, CausalSlice
from flexgroup.trace.history import Ints, by_key, no_ints

PARTS_A_SLICE = 8
BEFORE = 1
"""How many parts of the slice before it the checker of a slice sees."""


@dataclass(frozen=True)
class CausalEvents:
    """All about some messages that matters for causal order, and the part of each event."""

    rows: CausalSlice
    sent_in: Ints
    copy_sent_in: Ints
    heard_in: Ints
    heard_sent_in: Ints
    """The part in which the message was multicast."""
    out_of_sight: int
    back_in_time: int

    def windows(self, slices: int) -> Iterator[tuple[int, CausalSlice]]:
        """Yield the events for the checkers of slices, who see nothing else of the run; for each
        up to two times."""
        yield from self._by_slice(0, slices)
        yield from self._by_slice(1, slices)

    def by_slice(self) -> Iterator[tuple[int, CausalSlice]]:
        """Yield the events of each slice that has any."""
        yield from self._by_slice(None, 0)

    def _by_slice(self, shift: int | None, slices: int) -> Iterator[tuple[int, CausalSlice]]:
        """Yield what a slice is to see of its own events, or of those of the slice before it."""
        rows = self.rows
        places: list[Ints] = []
        for part in (self.sent_in, self.copy_sent_in, self.heard_in):
            slice_, place = np.divmod(part, PARTS_A_SLICE)
            seen_by: Ints = slice_ + (shift or 0)
            if shift:
                seen_by[(place < PARTS_A_SLICE - BEFORE) | (seen_by >= slices)] = NONE
            places.append(seen_by)
        if shift is not None:
            # What was multicast before the checker begins to see has no past there.
            places[2][self.heard_sent_in < places[2] * PARTS_A_SLICE - BEFORE] = NONE
        sent, copies, heard = (dict(by_key(place)) for place in places)
        nothing = no_ints()
        for target in sorted((sent.keys() | heard.keys()) - {NONE}):
            some = CausalSlice(
                rows.sent.chosen(sent.get(target, nothing)),
                rows.copies.chosen(copies.get(target, nothing)),
                rows.heard.chosen(heard.get(target, nothing)),
            )
            yield target, some


def causal_events(run: IndexedHistory, timeline: Timeline) -> CausalEvents:
    """Return what matters of some of the messages of a run, with all about them at hand."""
    multicasts, deliveries, queues = run.history.multicasts, run.history.deliveries, run.queues
    number = np.flatnonzero(run.multicast_row != NONE)
    row = run.multicast_row[number]
    part_of = np.full(run.message_count, NONE, dtype=np.int64)
    part_of[number] = timeline.part(multicasts.process[row], multicasts.step[row])

    known = np.flatnonzero(run.multicast_row[queues.message] != NONE)
    process, step = queues.process[known], deliveries.step[queues.row[known]]
    message, delivered_in = queues.message[known], timeline.part(process, step)
    back = _cuts_before(delivered_in) < _cuts_before(part_of[message])
    answered = step < timeline.last_sent[np.searchsorted(timeline.processes, process)]
    heard = Heard(process, step, run.identities[message], delivered_in // PARTS_A_SLICE)
    until = np.zeros(run.message_count, dtype=np.int64)
    np.maximum.at(until, message[answered], heard.came[answered])
    sent = Sent(
        multicasts.process[row],
        multicasts.step[row],
        run.identities[number],
        until[number],
        part_of[number] // PARTS_A_SLICE,
    )
    copies = _copies(run)
    copy_sent_in = part_of[run.copies.message]
    return CausalEvents(
        rows=CausalSlice(sent, copies, heard.chosen(answered)),
        sent_in=part_of[number],
        copy_sent_in=copy_sent_in,
        heard_in=delivered_in[answered],
        heard_sent_in=part_of[message[answered]],
        out_of_sight=_out_of_sight(copies, copy_sent_in, timeline),
        back_in_time=int(np.count_nonzero(back)),
    )


def _copies(run: IndexedHistory) -> Copies:
    deliveries, copies = run.history.deliveries, run.copies
    delivered = copies.row != NONE
    position = np.full(len(copies.row), NEVER, dtype=np.int64)
    time = np.zeros(len(copies.row), dtype=np.int64)
    # Steps may be as large as integers can be, and NEVER is larger than any position.
    position[delivered] = deliveries.step[copies.row[delivered]] - 1
    time[delivered] = deliveries.time[copies.row[delivered]]
    identities = run.identities[copies.message]
    return Copies(identities, copies.process, position, time, np.zeros_like(time))


def _out_of_sight(copies: Copies, sent_in: Ints, timeline: Timeline) -> int:
    """Count the copies that are out of sight; see above."""
    delivered = copies.position != NEVER
    step = np.where(delivered, copies.position + 1, timeline.last_heard_by(copies.process))
    ever = np.flatnonzero(step >= 0)
    last = timeline.part(copies.process[ever], step[ever]) // PARTS_A_SLICE
    return int(np.count_nonzero(sent_in[ever] < last * PARTS_A_SLICE - BEFORE))


def _cuts_before(part: Ints) -> Ints:
    """Return how many cuts lie before a part: where slices begin, and what their checkers see."""
    slice_, place = np.divmod(part, PARTS_A_SLICE)
    return 2 * slice_ + (place >= PARTS_A_SLICE - BEFORE)
