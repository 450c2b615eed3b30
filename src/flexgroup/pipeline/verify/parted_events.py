"""Events on their way to the first stage: packed by run and by part of its messages.

They come from Spark, or from files that the task opens itself, which spares most of the work where
it is possible. Of every event, whatever it is, the step goes along, as a bit.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flexgroup.core.message import ORIGIN_BITS, ORIGIN_MASK
from flexgroup.pipeline.reading.local_files import LocalFiles
from flexgroup.pipeline.verify.packed_rows import (
    Batches,
    PackedRow,
    Stage,
    narrow,
    pack,
    pack_narrow,
    packed_batch,
)
from flexgroup.pipeline.verify.steps_taken import STEPS, part_of_steps, steps_taken
from flexgroup.properties.kernels.grouping import runs
from flexgroup.trace.history import Ints, by_key, in_order
from flexgroup.trace.reader import ints, messages, parquet_file, unreadable
from flexgroup.trace.rules import refuse_broken_rules
from flexgroup.trace.schema import DELIVER, MULTICAST

ROWS_AT_ONCE = 1 << 19

ROWS_A_TASK = 2_000_000
"""How many rows a task reads from files, roughly."""

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


@dataclass(frozen=True)
class Piece:
    """A part of a file for one task: some of its row groups."""

    path: str
    kind: str
    row_groups: list[int]


PIECES = pa.schema([pa.field("place", pa.int32()), pa.field("pieces", pa.string())])


def part_events(kind: str, parts: int) -> Stage:
    """Return the stage from events of one kind, with the number of their run, to packed rows."""

    def stage(batches: Batches) -> Batches:
        for events in _together(batches):
            yield packed_batch(_parted(kind, ints(events, "number"), events, parts))

    return stage


def read_and_part(numbers: Mapping[str, int], parts: int) -> Stage:
    """Return the stage from PIECES of files to packed rows, of the runs with these names."""

    def stage(batches: Batches) -> Batches:
        for batch in batches:
            for pieces in batch.column("pieces").to_pylist():
                for piece in json.loads(pieces):
                    yield from _read(Piece(*piece), numbers, parts)

    return stage


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


def _read(piece: Piece, numbers: Mapping[str, int], parts: int) -> Batches:
    path, columns = Path(piece.path), ["run", *READ.get(piece.kind, STEPS_ONLY)]
    try:
        with parquet_file(path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(ROWS_AT_ONCE, piece.row_groups, columns):
                refuse_broken_rules(path, piece.kind, batch)
                table, number = _of_runs(pa.Table.from_batches([batch]), numbers)
                if table.num_rows:
                    yield packed_batch(_parted(piece.kind, number, table, parts))
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error) from None


def _of_runs(table: pa.Table, numbers: Mapping[str, int]) -> tuple[pa.Table, Ints]:
    """Return the rows of the runs that are wanted, and the number of each row's run."""
    column = table.column("run").unify_dictionaries().combine_chunks()
    names = column.dictionary.to_pylist()
    number_of = np.array([numbers.get(name, -1) for name in names], dtype=np.int64)
    number = number_of[column.indices.to_numpy(zero_copy_only=False)]
    wanted = number >= 0
    if wanted.all():
        return table, number
    return table.filter(pa.array(wanted)), number[wanted]


def _parted(kind: str, number: Ints, events: pa.Table, parts: int) -> Iterator[PackedRow]:
    process, step = ints(events, "process"), ints(events, "step")
    yield from _steps(number, process, step, parts)
    if kind not in READ:
        return
    message = messages(events)
    key = number * parts + part_of_message(message, parts)
    order = in_order(key)
    key = key[order]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    ends = np.append(starts[1:], len(key))
    rows = process, step, ints(events, "time"), message & ORIGIN_MASK, message >> ORIGIN_BITS
    columns = [narrow(column[order]) for column in rows]
    lists, list_starts = [], np.zeros(len(order) + 1, dtype=np.int64)
    if kind == MULTICAST:
        lengths, targets = _destinations(events, order)
        np.cumsum(lengths, out=list_starts[1:])
        columns.append(narrow(lengths))
        lists.append(narrow(targets))
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        first, last = int(list_starts[start]), int(list_starts[end])
        payload = pack_narrow(
            [
                *(column.part(start, end) for column in columns),
                *(column.part(first, last) for column in lists),
            ]
        )
        run, part = divmod(int(key[start]), parts)
        yield part, run, kind, payload


def _steps(number: Ints, process: Ints, step: Ints, parts: int) -> Iterator[PackedRow]:
    for run, of_run in by_key(number):
        taken = steps_taken(process[of_run], step[of_run])
        for part, lines in by_key(part_of_steps(taken[0], taken[1], parts)):
            yield part, run, STEPS, pack(column[lines] for column in taken)


def _destinations(events: pa.Table, order: Ints) -> tuple[Ints, Ints]:
    """Return how many destinations each row has, in this order, and these."""
    lists = events.column("destinations").combine_chunks()
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    targets = lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum(lengths)
    chosen, _ = runs((ends - lengths)[order], ends[order])
    return lengths[order], targets[chosen]


def part_of_message(message: Ints, parts: int) -> Ints:
    """Assign each message to a part, as if by chance and always in the same way."""
    mixed = (message.astype(np.uint64) * MIX) >> np.uint64(33)
    return (mixed % np.uint64(parts)).astype(np.int64)


def pieces_of(files: LocalFiles, kinds: Iterable[str], runs: Container[str]) -> list[list[Piece]]:
    """Return the parts of files that may hold events of these kinds of these runs, bundled for
    tasks of about equal weight."""
    bundles: list[list[Piece]] = []
    room = 0
    for kind in kinds:
        for name in sorted(files.rows.get(kind, ())):
            if name in files.names and name not in runs:
                continue  # it holds another run
            path = files.directory.absolute() / "events" / f"event={kind}" / f"{name}.parquet"
            footer = pq.read_metadata(path)
            for number in range(footer.num_row_groups):
                rows = footer.row_group(number).num_rows
                if rows > room:
                    bundles.append([])
                    room = ROWS_A_TASK
                room -= rows
                if bundles[-1] and bundles[-1][-1].path == str(path):
                    bundles[-1][-1].row_groups.append(number)
                else:
                    bundles[-1].append(Piece(str(path), kind, [number]))
    return bundles


def pieces_table(bundles: Iterable[list[Piece]]) -> pa.Table:
    """Return rows of PIECES, a place for each bundle."""
    rows = [
        {"place": place, "pieces": json.dumps([astuple(piece) for piece in bundle])}
        for place, bundle in enumerate(bundles)
    ]
    return pa.Table.from_pylist(rows, PIECES)
