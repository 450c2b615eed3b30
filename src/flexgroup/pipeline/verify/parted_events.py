"""Events on their way to the first stage: packed by run and by part of its messages.

They come from Spark, or from files that the task opens itself. Of every event, whatever it is, the
step goes along, as a bit. Where causal order is asked for, what is multicast and delivered goes to
windows of the run as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

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
    packed_batch,
)
from flexgroup.pipeline.verify.causal_windows import IN_WINDOW, CausalRun
from flexgroup.pipeline.verify.file_pieces import ROWS_AT_ONCE, read_pieces
from flexgroup.pipeline.verify.steps_taken import STEPS, part_of_steps, steps_taken
from flexgroup.properties.kernels.grouping import runs
from flexgroup.trace.history import Ints, by_key, in_order
from flexgroup.trace.reader import ints, messages
from flexgroup.trace.schema import DELIVER, MULTICAST

MIX = np.uint64(0x9E3779B97F4A7C15)

READ = {
    DELIVER: ("process", "step", "time", "origin", "seq"),
    MULTICAST: ("process", "step", "time", "origin", "seq", "destinations"),
}
"""The columns that are read of each kind of events; of others, only who took which step."""

STEPS_ONLY = ("process", "step")

DELIVER_COLUMNS = 5
"""Process, step, time, and the message: its origin, and its number there."""

MULTICAST_COLUMNS = 7
"""The same, and how many destinations each has, and these, one after the other."""


def part_events(kind: str, parts: int, causal: Mapping[int, CausalRun]) -> Stage:
    """Return the stage from events of one kind, with the number of their run, to packed rows."""

    def stage(batches: Batches) -> Batches:
        for events in _together(batches):
            yield packed_batch(_parted(kind, ints(events, "number"), events, parts, causal))

    return stage


def read_and_part(numbers: Mapping[str, int], parts: int, causal: Mapping[int, CausalRun]) -> Stage:
    """Return the stage from PIECES of files to packed rows, of the runs with these names."""

    def stage(batches: Batches) -> Batches:
        for kind, number, events in read_pieces(batches, numbers, columns_of):
            yield packed_batch(_parted(kind, number, events, parts, causal))

    return stage


def columns_of(kind: str) -> Sequence[str]:
    """Return the columns of events of this kind that are read."""
    return READ.get(kind, STEPS_ONLY)


def _together(batches: Batches) -> Iterator[pa.Table]:
    """Yield the rows of batches, several at a time."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= ROWS_AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting, count = [], 0
    if count:
        yield pa.Table.from_batches(waiting)


def _parted(
    kind: str, number: Ints, events: pa.Table, parts: int, causal: Mapping[int, CausalRun]
) -> Iterator[PackedRow]:
    process, step = ints(events, "process"), ints(events, "step")
    yield from _steps(number, process, step, parts)
    if kind not in READ:
        return
    message = messages(events)
    columns = process, step, ints(events, "time"), message & ORIGIN_MASK, message >> ORIGIN_BITS
    lists = _destinations(events) if kind == MULTICAST else None
    key = number * parts + part_of_message(message, parts)
    order = in_order(key)
    for (run, part), payload in _packed(key[order], parts, order, columns, lists):
        yield part, run, kind, payload
    for run, of_run in causal.items():
        rows = np.flatnonzero(number == run)
        if len(rows) == 0:
            continue
        chosen, window = of_run.windows(process[rows], step[rows])
        order = in_order(window)
        rows = rows[chosen[order]]
        for (_, place), payload in _packed(window[order], of_run.slices, rows, columns, lists):
            yield of_run.place + place, run, IN_WINDOW[kind], payload


def _packed(
    key: Ints, places: int, order: Ints, columns: Sequence[Ints], lists: tuple[Ints, Ints] | None
) -> Iterator[tuple[tuple[int, int], bytes]]:
    """Yield run and place of each key, which ascend, and the rows that go there, packed."""
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    ends = np.append(starts[1:], len(key))
    ordered = [narrow(column[order]) for column in columns]
    listed, list_starts = [], np.zeros(len(order) + 1, dtype=np.int64)
    if lists:
        lengths, targets = lists
        list_ends = np.cumsum(lengths)
        chosen, _ = runs((list_ends - lengths)[order], list_ends[order])
        np.cumsum(lengths[order], out=list_starts[1:])
        ordered.append(narrow(lengths[order]))
        listed.append(narrow(targets[chosen]))
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        first, last = int(list_starts[start]), int(list_starts[end])
        payload = pack_narrow(
            [
                *(column.part(start, end) for column in ordered),
                *(column.part(first, last) for column in listed),
            ]
        )
        yield divmod(int(key[start]), places), payload


def _steps(number: Ints, process: Ints, step: Ints, parts: int) -> Iterator[PackedRow]:
    for run, of_run in by_key(number):
        taken = steps_taken(process[of_run], step[of_run])
        for part, lines in by_key(part_of_steps(taken[0], taken[1], parts)):
            yield part, run, STEPS, pack(column[lines] for column in taken)


def _destinations(events: pa.Table) -> tuple[Ints, Ints]:
    """Return how many destinations each row has, and these, one row's after the other's."""
    lists = events.column("destinations").combine_chunks()
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths, lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64)


def part_of_message(message: Ints, parts: int) -> Ints:
    """Assign each message to a part, as if by chance and always in the same way."""
    mixed = (message.astype(np.uint64) * MIX) >> np.uint64(33)
    return (mixed % np.uint64(parts)).astype(np.int64)
