"""First stage for large runs: what each message shows by itself, and the way to the second.

A partition holds everything about its messages. Integrity, validity and agreement are about one
message at a time: their violations are counted here, and travel on as notes. Deliveries go on to
the slice that checks their order, multicast copies to the destination that checks FIFO order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

import numpy as np
import pyarrow as pa

from flexgroup.core.message import ORIGIN_BITS, ORIGIN_MASK
from flexgroup.pipeline.in_memory.packed_rows import (
    Batches,
    PackedRow,
    Stage,
    narrow,
    pack,
    pack_narrow,
    pack_table,
    packed_batch,
    received_by_run,
    unpack,
)
from flexgroup.pipeline.verify.causal_windows import (
    IN_WINDOW,
    MOST_BYTES,
    CausalRun,
    cannot_be_cut,
    check_window,
    never_multicast,
)
from flexgroup.pipeline.verify.layout import Layout
from flexgroup.pipeline.verify.message_parts import partial_history
from flexgroup.pipeline.verify.notes import Note, notes_batch
from flexgroup.pipeline.verify.steps_taken import STEPS, refuse_steps_taken_twice
from flexgroup.properties import integrity, missing_deliveries
from flexgroup.properties.indexed_history import NONE, Flags, IndexedHistory
from flexgroup.properties.kernels.grouping import runs
from flexgroup.trace.history import (
    Faults,
    Ints,
    by_key,
    in_order,
)
from flexgroup.trace.schema import DELIVER, MULTICAST

NEVER = np.iinfo(np.int64).min
"""The time of a multicast that is not in the trace."""

NO_LABEL = 0
"""Stands in place of the destinations of a message that was never multicast."""

WIDE = -1
"""Stands in place of destinations that have no number, because there are too many processes."""

MOST_LABELLED = 62

LAST = int(np.iinfo(np.int64).max)

SLICE = "slice"
"""The kind of rows that hold messages, and their deliveries, one message after the other."""

DESTINATION = "destination"
"""The kind of rows that hold copies of messages: where to, sender and step of the multicast, the
message as origin and number there, the step of its delivery or -1, and the time of that."""

DESTINATION_COLUMNS = ("destination", "sender", "sent", "origin", "seq", "step", "time")

FAR = "far"
"""The same of messages that are taken out, for all slices. What notes about them are about, whose
ranks have message, process and step of each delivery."""

MOST_FAR = 1024
"""How many messages may be taken out of a run, roughly: all slices get to know of them."""

NOTE = "note"

COUNTED = "counted"
"""What a note is about that says how much was looked at."""

UNDELIVERED = "undelivered"
"""What a note is about that counts copies that no destination, correct or not, delivered."""


def check_messages(layouts: Mapping[int, Layout], causal: Mapping[int, CausalRun]) -> Stage:
    """Return the stage from rows packed by part of the messages to rows packed by slice and by
    destination; and from rows packed by window of the causal runs to what is found in each."""

    def stage(batches: Batches) -> Batches:
        for number, kinds in received_by_run(batches).items():
            layout = layouts[number]
            if number in causal:
                yield packed_batch([_noted(layout, _check_windows(causal[number], kinds))])
            payloads = {
                kind: [payload for _, payload in kinds.get(kind, ())]
                for kind in (STEPS, MULTICAST, DELIVER)
            }
            if not any(payloads.values()):
                continue
            refuse_steps_taken_twice(layout.plan.run, *unpack(payloads[STEPS], 3))
            history = partial_history(payloads, layout.plan)
            run = IndexedHistory(replace(history, crashes=_crashes(layout)))
            more = never_multicast(number, run) if number in causal else ()
            yield packed_batch(_packed(run, layout, more))

    return stage


def _check_windows(run: CausalRun, kinds: dict[str, list[tuple[int, pa.Buffer]]]) -> Iterator[Note]:
    """Yield what is found in the windows that have arrived, of which nothing is kept."""
    places: dict[int, dict[str, list[pa.Buffer]]] = {}
    for kind, of_windows in IN_WINDOW.items():
        for place, payload in kinds.pop(of_windows, ()):
            places.setdefault(place, {kind: [] for kind in IN_WINDOW})[kind].append(payload)
    for place in sorted(places):
        size = sum(payload.size for of_kind in places[place].values() for payload in of_kind)
        if size > MOST_BYTES:
            raise cannot_be_cut(run.layout.plan.run, size, MOST_BYTES)
        history = partial_history(places.pop(place), run.layout.plan)
        yield from check_window(run, place - run.place, IndexedHistory(history))


def slice_columns(layout: Layout) -> tuple[str, ...]:
    """Return the columns of rows of the kind SLICE: those of messages, and then of deliveries.

    Messages have their origin and number there, their first delivery and how many deliveries; for
    order in real time, when they were multicast; for local order, a number for their destinations.
    For prefix order, deliveries tell whether they are the first one at a destination.
    """
    return (
        *("origin", "seq", "first", "count"),
        *(["multicast"] if layout.in_real_time else []),
        *(["label"] if "local order" in layout.plan.properties else []),
        *("process", "step"),
        *(["expected"] if "prefix order" in layout.plan.properties else []),
    )


def _crashes(layout: Layout) -> Faults:
    crashed = np.array(layout.crashed, dtype=np.int64)
    nothing = np.zeros(len(crashed), dtype=np.int64)
    return Faults(crashed, nothing, nothing)


def _noted(layout: Layout, notes: Iterable[Note]) -> PackedRow:
    return layout.first_place, layout.plan.number, NOTE, pack_table(notes_batch(notes))


def _packed(run: IndexedHistory, layout: Layout, more: Iterable[Note]) -> Iterator[PackedRow]:
    notes = _counted(run, layout), _integrity(run, layout), _missing(run, layout), more
    yield _noted(layout, chain(*notes))
    if layout.by_slice:
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
    if {"prefix order", *missing_deliveries.FIND}.isdisjoint(layout.plan.properties):
        return
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
    """Yield the first deliveries of messages at processes for the slices that need them."""
    queues, deliveries = run.queues, run.history.deliveries
    rows = queues.row[in_order(queues.message)]
    count = np.bincount(queues.message, minlength=run.message_count)
    messages = np.flatnonzero(count)
    if len(messages) == 0:
        return
    count = count[messages]
    ends = np.cumsum(count)
    times = deliveries.time[rows]
    first = np.minimum.reduceat(times, ends - count)
    cell = layout.cell(first)
    own, place = np.divmod(cell, layout.cells_a_slice)
    identity = run.identities[messages]
    about = [identity & ORIGIN_MASK, identity >> ORIGIN_BITS, first, count]
    at_processes = [deliveries.process, deliveries.step]
    wanted = slice_columns(layout)
    if "multicast" in wanted:
        about.append(_times_of_multicasts(run)[messages])
    if "label" in wanted:
        about.append(_labels(run)[messages])
    if "expected" in wanted:
        at_processes.append(run.expected.astype(np.int64))
    far = _are_far(layout, cell, np.maximum.reduceat(times, ends - count))
    to_previous = np.flatnonzero((place < layout.margin) & (own > 0) & ~far)
    to_next = np.flatnonzero(
        (place >= layout.cells_a_slice - layout.margin) & (own < layout.slices - 1) & ~far
    )
    for shift, sent in ((0, np.flatnonzero(~far)), (-1, to_previous), (1, to_next)):
        sent = sent[in_order(own[sent])]
        chosen, _ = runs((ends - count)[sent], ends[sent])
        columns = [narrow(column[sent]) for column in about]
        lists = [narrow(column[rows[chosen]]) for column in at_processes]
        list_ends = np.cumsum(count[sent])
        for key, places in by_key(own[sent]):
            start, end = int(places[0]), int(places[-1]) + 1
            low, high = int(list_ends[start] - count[sent[start]]), int(list_ends[end - 1])
            payload = pack_narrow(
                [
                    *(column.part(start, end) for column in columns),
                    *(column.part(low, high) for column in lists),
                ]
            )
            yield layout.first_place + key + shift, layout.plan.number, SLICE, payload
    if not far.any():
        return
    chosen, owner = runs((ends - count)[far], ends[far])
    there = [column[rows[chosen]] for column in at_processes]
    payload = pack([*(column[far] for column in about), *there])
    for slice_ in range(layout.slices):
        yield layout.first_place + slice_, layout.plan.number, FAR, payload
    table = np.stack([identity[far][owner], *there[:2]], axis=1)
    shown = identity[far].tolist()
    yield _noted(layout, [Note(layout.plan.number, FAR, "", 0, table.ravel().tolist(), shown)])


def _are_far(layout: Layout, first_cell: Ints, last_delivery: Ints) -> Flags:
    """Tell which messages are taken out: those whose deliveries lie in cells further apart than
    margins are wide, if they are few."""
    if not layout.takes_out:
        return np.zeros(len(first_cell), dtype=np.bool_)
    far: Flags = layout.cell(last_delivery) - first_cell > layout.margin
    # There are about as many parts of the messages as slices.
    most = min(max(1, MOST_FAR // layout.slices), len(far) // layout.slices)
    if np.count_nonzero(far) > most:
        far[:] = False
    return far


def _times_of_multicasts(run: IndexedHistory) -> Ints:
    times = np.full(run.message_count, NEVER, dtype=np.int64)
    known = run.multicast_row != NONE
    times[known] = run.history.multicasts.time[run.multicast_row[known]]
    return times


def _labels(run: IndexedHistory) -> Ints:
    """Return a number for each message that tells its destinations: a bit for each of them."""
    labels = np.full(run.message_count, NO_LABEL, dtype=np.int64)
    copies = run.copies
    if len(copies.process) == 0:
        return labels
    begins = np.flatnonzero(np.append(True, copies.message[1:] != copies.message[:-1]))
    is_wide = int(copies.process.max()) >= MOST_LABELLED
    bits = np.left_shift(np.int64(1), np.where(is_wide, 0, copies.process))
    labels[copies.message[begins]] = WIDE if is_wide else np.bitwise_or.reduceat(bits, begins)
    return labels


def _to_destinations(run: IndexedHistory, layout: Layout) -> Iterator[PackedRow]:
    copies, multicasts, deliveries = run.copies, run.history.multicasts, run.history.deliveries
    sent = run.multicast_row[copies.message]
    delivered = copies.row != NONE
    step = np.full(len(copies.row), -1, dtype=np.int64)
    time = np.zeros(len(copies.row), dtype=np.int64)
    step[delivered] = deliveries.step[copies.row[delivered]]
    time[delivered] = deliveries.time[copies.row[delivered]]
    identity = run.identities[copies.message]
    columns = (
        copies.process,
        multicasts.process[sent],
        multicasts.step[sent],
        identity & ORIGIN_MASK,
        identity >> ORIGIN_BITS,
        step,
        time,
    )
    # The order in which a process that is faulty by design multicast its messages binds nobody.
    kept = np.flatnonzero(~run.faulty_by_design(multicasts.process[sent]))
    for share, chosen in by_key(layout.share_of_destination(copies.process[kept])):
        rows = kept[chosen]
        place = layout.first_place + layout.slices + share
        yield place, layout.plan.number, DESTINATION, pack(column[rows] for column in columns)
