"""First stage for large runs: what each message shows by itself, and the way to the second.

A partition holds everything about its messages. Integrity, validity and agreement are about one
message at a time: their violations are counted here, and travel on as notes. Deliveries go on to
the slice that checks their order, multicast copies to the destination that checks FIFO order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from flexgroup.pipeline.verify.layout import Layout
from flexgroup.pipeline.verify.packed_rows import (
    Batches,
    PackedRow,
    Stage,
    pack,
    pack_table,
    packed_batch,
    received_by_run,
    unpack_table,
)
from flexgroup.properties import integrity, missing_deliveries
from flexgroup.properties.indexed_history import NONE, IndexedHistory
from flexgroup.trace.history import Faults, by_key
from flexgroup.trace.reader import history_of
from flexgroup.trace.run_events import refuse_repeated_multicasts
from flexgroup.trace.schema import DELIVER, MULTICAST

NEVER = np.iinfo(np.int64).min
"""The time of a multicast that is not in the trace."""

LAST = int(np.iinfo(np.int64).max)

SLICE = "slice"
"""The kind of rows that hold process and step of a delivery, the message, its first delivery, and
for order in real time the time of its multicast."""

DESTINATION = "destination"
"""The kind of rows that hold sender and step of a multicast, the message, the step of its delivery
or -1, and the time of that."""

NOTE = "note"

COUNTED = "counted"
"""What a note is about that says how much was looked at."""

UNDELIVERED = "undelivered"
"""What a note is about that counts copies that no destination, correct or not, delivered."""


@dataclass(frozen=True)
class Note:
    """A part of what is known of a run: how many violations, and the first of them.

    `rank` orders parts: the smallest tells which violation is shown, that of `messages`.
    """

    number: int
    about: str
    kind: str
    total: int
    rank: Sequence[int]
    messages: Sequence[int]


NOTES = pa.schema(
    [
        pa.field("number", pa.int32()),
        pa.field("about", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("total", pa.int64()),
        pa.field("rank", pa.list_(pa.int64())),
        pa.field("messages", pa.list_(pa.int64())),
    ]
)


def notes_batch(notes: Iterable[Note]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([vars(note) for note in notes], NOTES)


def check_messages(layouts: Mapping[int, Layout]) -> Stage:
    """Return the stage from rows packed by part of the messages to rows packed by slice and by
    destination."""

    def stage(batches: Batches) -> Batches:
        for number, kinds in received_by_run(batches).items():
            tables: dict[str, pa.Table] = defaultdict(lambda: pa.table({}))
            for kind, packed in kinds.items():
                tables[kind] = pa.concat_tables([unpack_table(payload) for _, payload in packed])
            layout = layouts[number]
            history = history_of(tables.__getitem__, layout.plan)
            refuse_repeated_multicasts(history.run, history.multicasts.message)
            run = IndexedHistory(replace(history, crashes=_crashes(layout)))
            yield packed_batch(_packed(run, layout))

    return stage


def _crashes(layout: Layout) -> Faults:
    crashed = np.array(layout.crashed, dtype=np.int64)
    nothing = np.zeros(len(crashed), dtype=np.int64)
    return Faults(crashed, nothing, nothing)


def _packed(run: IndexedHistory, layout: Layout) -> Iterator[PackedRow]:
    notes = (*_counted(run, layout), *_integrity(run, layout), *_missing(run, layout))
    yield layout.first_place, layout.plan.number, NOTE, pack_table(notes_batch(notes))
    yield from _to_slices(run, layout)
    if layout.by_destination:
        yield from _to_destinations(run, layout)


def _counted(run: IndexedHistory, layout: Layout) -> Iterator[Note]:
    for kind, rows in ((DELIVER, run.history.deliveries), (MULTICAST, run.history.multicasts)):
        yield Note(layout.plan.number, COUNTED, kind, len(rows.message), [], [])


def _integrity(run: IndexedHistory, layout: Layout) -> Iterator[Note]:
    if integrity.NAME not in layout.plan.properties:
        return
    deliveries = run.history.deliveries
    for kind, flags in integrity.wrong_deliveries(run).items():
        rows = np.flatnonzero(flags)
        if len(rows):
            row = int(rows[np.argmin(deliveries.time[rows])])
            rank = [int(c[row]) for c in (deliveries.time, deliveries.process, deliveries.step)]
            if kind == integrity.UNRECORDED:
                rank.insert(0, LAST)  # shown only if nothing is wrong for sure
            yield Note(
                layout.plan.number,
                integrity.NAME,
                kind,
                len(rows),
                rank,
                [int(deliveries.message[row])],
            )


def _missing(run: IndexedHistory, layout: Layout) -> Iterator[Note]:
    copies, times = run.copies, run.history.multicasts.time
    undelivered = int(np.count_nonzero(copies.row == NONE))
    if undelivered == 0:
        return
    yield Note(layout.plan.number, UNDELIVERED, "", undelivered, [], [])
    for name, find in missing_deliveries.FIND.items():
        missing = find(run).copies if name in layout.plan.properties else ()
        if len(missing):
            time = times[run.multicast_row[copies.message[missing]]]
            first = int(missing[np.argmin(time)])
            message = run.identity(int(copies.message[first]))
            rank = [int(time.min()), message, int(copies.process[first])]
            yield Note(layout.plan.number, name, "", len(missing), rank, [message])


def _to_slices(run: IndexedHistory, layout: Layout) -> Iterator[PackedRow]:
    """Yield each first delivery of a message at a process for the slices that need it."""
    queues, deliveries = run.queues, run.history.deliveries
    first = np.full(run.message_count, np.iinfo(np.int64).max, dtype=np.int64)
    np.minimum.at(first, queues.message, deliveries.time[queues.row])
    multicast = np.full(run.message_count, NEVER, dtype=np.int64)
    known = run.multicast_row != NONE
    multicast[known] = run.history.multicasts.time[run.multicast_row[known]]
    own, place = np.divmod(layout.cell(first), layout.cells_a_slice)
    last = layout.slices - 1
    to_previous = (place < layout.margin) & (own > 0)
    to_next = (place >= layout.cells_a_slice - layout.margin) & (own < last)
    for shift, sent in ((0, None), (-1, to_previous), (1, to_next)):
        target = own[queues.message] + shift
        rows = np.arange(len(target)) if sent is None else np.flatnonzero(sent[queues.message])
        for key, chosen in by_key(target[rows]):
            some = rows[chosen]
            message = queues.message[some]
            columns = [
                queues.process[some],
                deliveries.step[queues.row[some]],
                run.identities[message],
                first[message],
            ]
            if layout.in_real_time:
                columns.append(multicast[message])
            yield layout.first_place + key, layout.plan.number, SLICE, pack(columns)


def _to_destinations(run: IndexedHistory, layout: Layout) -> Iterator[PackedRow]:
    copies, multicasts, deliveries = run.copies, run.history.multicasts, run.history.deliveries
    sent = run.multicast_row[copies.message]
    delivered = copies.row != NONE
    step = np.full(len(copies.row), -1, dtype=np.int64)
    time = np.zeros(len(copies.row), dtype=np.int64)
    step[delivered] = deliveries.step[copies.row[delivered]]
    time[delivered] = deliveries.time[copies.row[delivered]]
    columns = (
        multicasts.process[sent],
        multicasts.step[sent],
        run.identities[copies.message],
        step,
        time,
    )
    # The order in which a process that is faulty by design multicast its messages binds nobody.
    kept = np.flatnonzero(~run.faulty_by_design(multicasts.process[sent]))
    for destination, chosen in by_key(copies.process[kept]):
        rows = kept[chosen]
        place = layout.first_place + layout.slices + destination
        yield place, layout.plan.number, DESTINATION, pack(column[rows] for column in columns)
