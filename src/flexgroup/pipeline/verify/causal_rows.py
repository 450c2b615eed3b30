"""What a part of the messages has to do with causal order, on the way to slices of the run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flexgroup.pipeline.verify.causal_windows import PARTS_A_SLICE
from flexgroup.pipeline.verify.timeline import Timeline
from flexgroup.properties.indexed_history import NONE, IndexedHistory
from flexgroup.properties.kernels.causal_graph import Copies, Heard, Sent
from flexgroup.properties.kernels.causal_slices import NEVER, CausalSlice
from flexgroup.properties.kernels.grouping import scattered
from flexgroup.trace.history import Ints, by_key, no_ints


@dataclass(frozen=True)
class CausalEvents:
    """All about some messages that matters for causal order."""

    rows: CausalSlice
    copy_sent_in: Ints
    """The slice in which the message of each copy was multicast."""

    def by_slice(self) -> Iterator[tuple[int, CausalSlice]]:
        """Yield the events of each slice that has any."""
        rows, nothing = self.rows, no_ints()
        slices = (rows.sent.came, self.copy_sent_in, rows.heard.came)
        sent, copies, heard = (dict(by_key(slice_)) for slice_ in slices)
        for target in sorted(sent.keys() | heard.keys()):
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
    sent_in = timeline.part(multicasts.process[row], multicasts.step[row]) // PARTS_A_SLICE

    known = np.flatnonzero(run.multicast_row[queues.message] != NONE)
    process, step = queues.process[known], deliveries.step[queues.row[known]]
    answered = step < timeline.last_sent[np.searchsorted(timeline.processes, process)]
    process, step, message = process[answered], step[answered], queues.message[known][answered]
    heard_in = timeline.part(process, step) // PARTS_A_SLICE
    until = np.zeros(run.message_count, dtype=np.int64)
    np.maximum.at(until, message, heard_in)
    sent_in_of = scattered(run.message_count, number, sent_in)
    return CausalEvents(
        CausalSlice(
            Sent(
                multicasts.process[row],
                multicasts.step[row],
                run.identities[number],
                until[number],
                sent_in,
            ),
            _copies(run),
            Heard(process, step, run.identities[message], heard_in),
        ),
        copy_sent_in=sent_in_of[run.copies.message],
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
