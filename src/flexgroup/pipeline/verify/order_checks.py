"""Second stage for large runs: orders, slice by slice and destination by destination."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from flexgroup.pipeline.verify.layout import Layout
from flexgroup.pipeline.verify.message_checks import (
    DESTINATION,
    NEVER,
    NOTE,
    SLICE,
    Note,
    notes_batch,
)
from flexgroup.pipeline.verify.packed_rows import (
    Batches,
    Stage,
    received_by_run,
    unpack,
    unpack_table,
)
from flexgroup.properties import fifo_order, real_time_order
from flexgroup.properties.indexed_history import IndexedHistory
from flexgroup.properties.kernels.consistent_cuts import NOTHING, smallest_cut
from flexgroup.properties.kernels.grouping import largest_before, numbered
from flexgroup.properties.kernels.head_merge import cyclic_components
from flexgroup.trace.history import Deliveries, History, Ints, Multicasts, by_pairs

COMPONENT = "cyclic component"
EDGE = "edge"
CLOCK = "clock"

LATER = np.iinfo(np.int64).max
EARLIER = -1
"""Steps that stand for nothing: one later than all, one earlier than all."""


def check_orders(layouts: Mapping[int, Layout]) -> Stage:
    """Return the stage from rows packed by slice and by destination to rows with NOTES."""

    def stage(batches: Batches) -> Batches:
        for number, kinds in received_by_run(batches).items():
            layout = layouts[number]
            for _, notes in kinds.get(NOTE, []):
                yield from unpack_table(notes).to_batches()
            for place, columns in _by_place(kinds.get(SLICE, []), 4 + layout.in_real_time):
                yield notes_batch(_check_slice(layout, place - layout.first_place, *columns))
            for place, columns in _by_place(kinds.get(DESTINATION, []), 5):
                destination = place - layout.first_place - layout.slices
                yield notes_batch(_fifo(layout, destination, *columns))

    return stage


def _by_place(packed: list[tuple[int, bytes]], width: int) -> Iterator[tuple[int, list[Ints]]]:
    """Yield the columns of each place, sorted by the first two."""
    payloads: dict[int, list[bytes]] = {}
    for place, payload in packed:
        payloads.setdefault(place, []).append(payload)
    for place in sorted(payloads):
        columns = unpack(payloads.pop(place), width)
        order = by_pairs(columns[0], columns[1])
        yield place, [column[order] for column in columns]


def _check_slice(
    layout: Layout,
    place: int,
    process: Ints,
    step: Ints,
    message: Ints,
    first: Ints,
    multicast: Ints | None = None,
) -> Iterator[Note]:
    """Yield the cyclic components within the slice, and what tells whether its margins were wide
    enough."""
    identities, firsts, number = numbered(message)
    cell = layout.cell(first[firsts])
    begin, end = place * layout.cells_a_slice, (place + 1) * layout.cells_a_slice
    inside = np.ones(len(identities), dtype=np.bool_)
    frontier = np.full(int(process.max()) + 1, NOTHING, dtype=np.int64)
    if place < layout.slices - 1:
        inside, frontier = smallest_cut(process, number, cell < end)
    if place > 0:
        inside &= ~smallest_cut(process, number, cell < begin)[0]
    yield from _edges(layout, place, process, step, cell[number], frontier)
    chosen = np.flatnonzero(inside[number])
    renumbered = (np.cumsum(inside) - 1)[number[chosen]]
    members = identities[inside]
    for component in cyclic_components(process[chosen], renumbered, len(members)):
        cyclic = members[component].tolist()
        yield Note(layout.plan.number, COMPONENT, "", 1, cyclic[:1], cyclic)
    if multicast is not None:
        yield from _real_time(
            layout,
            place,
            History(
                **layout.plan.facts(),
                multicasts=_multicasts(members, multicast[firsts][inside]),
                deliveries=Deliveries(
                    process[chosen], step[chosen], first[chosen], message[chosen]
                ),
            ),
        )


def _edges(
    layout: Layout, place: int, process: Ints, step: Ints, cell: Ints, frontier: Ints
) -> Iterator[Note]:
    """Yield, per process, the slice's first and last step; the same without the margins that its
    neighbours saw; and how far the cut at its end reaches."""
    begin, end = place * layout.cells_a_slice, (place + 1) * layout.cells_a_slice
    own = (cell >= begin) & (cell < end)
    count = len(frontier)

    def lowest(rows: NDArray[np.bool_]) -> Ints:
        result = np.full(count, LATER, dtype=np.int64)
        np.minimum.at(result, process[rows], step[rows])
        return result

    def highest(rows: NDArray[np.bool_]) -> Ints:
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
    for row in table[np.unique(process)].tolist():
        yield Note(layout.plan.number, EDGE, "", 0, row, [])


def _multicasts(members: Ints, time: Ints) -> Multicasts:
    """Return multicasts without what order in real time does not need: destinations and senders."""
    known = time != NEVER
    nothing = np.zeros(int(known.sum()), dtype=np.int64)
    offsets = np.zeros(len(nothing) + 1, dtype=np.int64)
    return Multicasts(nothing, np.arange(len(nothing)), time[known], members[known], offsets)


def _real_time(layout: Layout, place: int, history: History) -> Iterator[Note]:
    latest = int(history.multicasts.time.max(initial=NEVER))
    begins = layout.begins(place) if place else NEVER
    yield Note(layout.plan.number, CLOCK, "", 0, [place, begins, latest], [])
    verdict = real_time_order.check(IndexedHistory(history))
    if verdict.witness:
        *_, delivery, _ = verdict.witness
        messages = list(dict.fromkeys(step.message for step in verdict.witness))
        row = int(np.flatnonzero(history.deliveries.message == delivery.message)[0])
        rank = [int(history.deliveries.time[row]), delivery.message]
        yield Note(layout.plan.number, real_time_order.NAME, "", verdict.violations, rank, messages)


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
