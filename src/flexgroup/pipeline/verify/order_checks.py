"""Second stage for large runs: orders, slice by slice and destination by destination."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from flexgroup.core.message import ORIGIN_BITS, ORIGIN_MASK
from flexgroup.pipeline.in_memory.packed_rows import (
    Batches,
    Stage,
    received_by_run,
    unpack,
    unpack_table,
)
from flexgroup.pipeline.verify import excerpts
from flexgroup.pipeline.verify.excerpts import Compared
from flexgroup.pipeline.verify.far_messages import RowsOfSlice, passage_of
from flexgroup.pipeline.verify.layout import Layout
from flexgroup.pipeline.verify.message_checks import (
    DESTINATION,
    DESTINATION_COLUMNS,
    FAR,
    NEVER,
    NO_LABEL,
    NOTE,
    SLICE,
    slice_columns,
)
from flexgroup.pipeline.verify.notes import Note, notes_batch
from flexgroup.pipeline.verify.slice_edges import EARLIER, LATER
from flexgroup.properties import fifo_order, real_time_order
from flexgroup.properties.indexed_history import Flags, IndexedHistory
from flexgroup.properties.kernels.consistent_cuts import NOTHING, smallest_cut
from flexgroup.properties.kernels.crossings import crossing
from flexgroup.properties.kernels.grouping import distinct, largest_before, marked, numbered
from flexgroup.properties.kernels.head_merge import cyclic_components
from flexgroup.trace.history import Deliveries, History, Ints, Multicasts, by_key, by_pairs

COMPONENT = "cyclic component"
EDGE = "edge"
CROSSING = "crossing"
"""What a note is about that says how the latest multicasts cross a slice: its rank has the number
of the slice, how many processes there are, and the crossing."""


def check_orders(layouts: Mapping[int, Layout]) -> Stage:
    """Return the stage from rows packed by slice and by destination to rows with NOTES."""

    def stage(batches: Batches) -> Batches:
        for number, kinds in received_by_run(batches).items():
            layout = layouts[number]
            for _, notes in kinds.get(NOTE, []):
                yield from unpack_table(notes).to_batches()
            names = slice_columns(layout)
            far = dict(_by_place(kinds.pop(FAR, []), names))
            for place, columns in _by_place(kinds.pop(SLICE, []), names):
                slice_ = place - layout.first_place
                yield notes_batch(_check_slice(layout, slice_, columns, far.get(place)))
            for _, columns in _by_place(kinds.pop(DESTINATION, []), DESTINATION_COLUMNS):
                yield notes_batch(_check_destinations(layout, **columns))

    return stage


def _by_place(
    packed: list[tuple[int, pa.Buffer]], names: Sequence[str]
) -> Iterator[tuple[int, dict[str, Ints]]]:
    """Yield the columns of each place, and keep nothing of them."""
    payloads: dict[int, list[pa.Buffer]] = {}
    while packed:
        place, payload = packed.pop()
        payloads.setdefault(place, []).append(payload)
    for place in sorted(payloads):
        yield place, dict(zip(names, unpack(payloads.pop(place), len(names)), strict=True))


def _check_slice(
    layout: Layout, place: int, columns: dict[str, Ints], far: dict[str, Ints] | None
) -> Iterator[Note]:
    """Yield the cyclic components within the slice, what tells whether its margins were wide
    enough, and what has to be known of it for messages that were taken out."""
    identities = (columns["seq"] << ORIGIN_BITS) | columns["origin"]
    first, count = columns["first"], columns["count"]
    order = by_pairs(columns["process"], columns["step"])
    # What is in order is not kept in another one: a slice may be the whole run.
    process, step = columns.pop("process")[order], columns.pop("step")[order]
    expected = columns.pop("expected")[order] if "expected" in columns else None
    number = np.repeat(np.arange(len(count)), count)[order]
    del order
    members, renumbered = identities, number
    inside: Flags = np.ones(len(identities), dtype=np.bool_)
    chosen: Ints | slice = slice(None)
    if layout.slices > 1:
        cell = layout.cell(first)
        inside, frontier = _between_cuts(layout, place, process, number, cell)
        yield from _edges(layout, place, process, step, cell[number], frontier)
        chosen = np.flatnonzero(inside[number])
        renumbered = (np.cumsum(inside) - 1)[number[chosen]]
        members = identities[inside]
    components = cyclic_components(process[chosen], renumbered, len(members))
    rows = RowsOfSlice(
        process[chosen],
        step[chosen],
        renumbered,
        columns["label"][inside] if "label" in columns else None,
        None if expected is None else expected[chosen],
    )
    if components:
        cyclic = np.sort(members[_to_be_shown(rows, components, len(members))]).tolist()
        yield Note(layout.plan.number, COMPONENT, "", len(components), cyclic[:1], cyclic)
    if far is not None:
        yield from _beside_far(layout, rows, members, components, far)
    if "multicast" in columns:
        if layout.slices > 1:
            times = first[inside], columns["multicast"][inside]
            yield _crossing(layout, place, rows, members, *times)
        yield from _real_time(
            layout,
            History(
                **layout.plan.facts(),
                multicasts=_multicasts(members, columns["multicast"][inside]),
                deliveries=Deliveries(
                    rows.process,
                    rows.step,
                    first[number[chosen]],
                    identities[number[chosen]],
                ),
            ),
        )


def _between_cuts(
    layout: Layout, place: int, process: Ints, number: Ints, cell: Ints
) -> tuple[Flags, Ints]:
    """Tell which messages are in the slice, and return the frontier of the cut at its end."""
    begin, end = place * layout.cells_a_slice, (place + 1) * layout.cells_a_slice
    inside: Flags = np.ones(len(cell), dtype=np.bool_)
    frontier = np.full(int(process.max()) + 1, NOTHING, dtype=np.int64)
    if place < layout.slices - 1:
        inside, frontier = smallest_cut(process, number, cell < end)
    if place > 0:
        inside &= ~smallest_cut(process, number, cell < begin)[0]
    return inside, frontier


def _beside_far(
    layout: Layout,
    rows: RowsOfSlice,
    members: Ints,
    components: Sequence[Ints],
    columns: dict[str, Ints],
) -> Iterator[Note]:
    """Yield what has to be known of a slice for the messages that were taken out, whose columns
    these are."""
    far = RowsOfSlice(
        columns["process"],
        columns["step"],
        np.repeat(np.arange(len(columns["count"])), columns["count"]),
        columns.get("label"),
        columns.get("expected"),
    )
    if rows.is_wide or far.is_wide:
        return
    number = layout.plan.number
    note, beside = passage_of(number, rows, components, len(members), far)
    yield note
    yield Note(number, COMPONENT, "", 0, [], members[beside].tolist())


def _to_be_shown(rows: RowsOfSlice, components: Sequence[Ints], count: int) -> Ints:
    """Return the messages of cyclic components, or of many only those that verdicts rest on."""
    messages = np.concatenate(components)
    if len(messages) <= excerpts.KEPT or rows.is_wide:
        return messages
    cyclic = np.flatnonzero(marked(count, messages)[rows.message])
    process, message = rows.process[cyclic], rows.message[cyclic]
    alike = np.zeros(count, dtype=np.int64)
    compared = [Compared(process, message, alike)]
    if rows.label is not None:
        known = rows.label[message] != NO_LABEL
        _, _, label = numbered(rows.label)
        compared.append(Compared(process[known], message[known], label))
    if rows.expected is not None:
        at_destination = rows.expected[cyclic] == 1
        compared.append(Compared(process[at_destination], message[at_destination], alike))
    found = excerpts.excerpt(compared)
    return messages if found is None else found


def _edges(
    layout: Layout, place: int, process: Ints, step: Ints, cell: Ints, frontier: Ints
) -> Iterator[Note]:
    """Yield, process by process, the slice's first and last step; the same without the margins that
    its neighbours saw; and how far the cut at its end reaches."""
    begin, end = place * layout.cells_a_slice, (place + 1) * layout.cells_a_slice
    own = (cell >= begin) & (cell < end)
    count = len(frontier)

    def lowest(rows: Flags) -> Ints:
        result = np.full(count, LATER, dtype=np.int64)
        np.minimum.at(result, process[rows], step[rows])
        return result

    def highest(rows: Flags) -> Ints:
        result = np.full(count, EARLIER, dtype=np.int64)
        np.maximum.at(result, process[rows], step[rows])
        return result

    reached = np.where(frontier == NOTHING, EARLIER, step[frontier])
    table = np.stack(
        [
            np.full(count, place),
            np.arange(count),
            lowest(own),
            lowest(own & (cell >= begin + layout.margin)),
            highest(own & (cell < end - layout.margin)),
            highest(own),
            reached,
        ],
        axis=1,
    )
    yield Note(layout.plan.number, EDGE, "", 0, table[distinct(process)].ravel().tolist(), [])


def _multicasts(members: Ints, time: Ints) -> Multicasts:
    """Return multicasts without what order in real time does not need: destinations and senders."""
    known = time != NEVER
    nothing = np.zeros(int(known.sum()), dtype=np.int64)
    offsets = np.zeros(len(nothing) + 1, dtype=np.int64)
    return Multicasts(nothing, np.arange(len(nothing)), time[known], members[known], offsets)


def _real_time(layout: Layout, history: History) -> Iterator[Note]:
    verdict = real_time_order.check(IndexedHistory(history))
    if verdict.witness:
        *_, delivery, _ = verdict.witness
        messages = list(dict.fromkeys(step.message for step in verdict.witness))
        row = int(np.flatnonzero(history.deliveries.message == delivery.message)[0])
        rank = [int(history.deliveries.time[row]), delivery.message]
        yield Note(layout.plan.number, real_time_order.NAME, "", verdict.violations, rank, messages)


def _crossing(
    layout: Layout, place: int, rows: RowsOfSlice, members: Ints, first: Ints, multicast: Ints
) -> Note:
    # Nobody knows when a process that is faulty by design multicast its messages.
    unknown = np.isin(members & ORIGIN_MASK, layout.plan.faulty)
    multicast = np.where(unknown, NEVER, multicast)
    processes = 1 + int(rows.process.max(initial=0))
    found = crossing(rows.process, rows.message, first, multicast, processes)
    rank = [place, processes, *found.to_ints()]
    return Note(layout.plan.number, CROSSING, "", 0, rank, [])


def _check_destinations(
    layout: Layout,
    destination: Ints,
    sender: Ints,
    sent: Ints,
    origin: Ints,
    seq: Ints,
    step: Ints,
    time: Ints,
) -> Iterator[Note]:
    columns = sender, sent, (seq << ORIGIN_BITS) | origin, step, time
    for process, rows in by_key(destination):
        rows = rows[by_pairs(sender[rows], sent[rows])]
        yield from _fifo(layout, process, *(column[rows] for column in columns))


def _fifo(
    layout: Layout,
    destination: int,
    sender: Ints,
    sent: Ints,
    message: Ints,
    step: Ints,
    time: Ints,
) -> Iterator[Note]:
    """Yield what the destination delivered before something that the same sender multicast
    before."""
    delivered = step >= 0
    # Places instead of steps, which may be as large as integers can be.
    steps, _, place = numbered(step)
    position = np.where(delivered, place, len(steps))
    group = np.zeros(len(sender), dtype=np.int64)
    np.cumsum(sender[1:] != sender[:-1], out=group[1:])
    wrong = np.flatnonzero(delivered & (largest_before(group, position) > position))
    if len(wrong) == 0:
        return
    earliest = wrong[np.lexsort((message[wrong], time[wrong]))[0]]
    before = np.flatnonzero(
        (sender == sender[earliest]) & (sent < sent[earliest]) & (position > position[earliest])
    )
    rank = [int(time[earliest]), int(message[earliest]), destination]
    messages = [int(message[before[0]]), int(message[earliest])]
    yield Note(layout.plan.number, fifo_order.NAME, "", len(wrong), rank, messages)
