"""Stage zero for large runs: events packed by the part of the messages that they are about."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from flexgroup.pipeline.verify.packed_rows import (
    Batches,
    PackedRow,
    Stage,
    by_key,
    pack,
    packed_batch,
)
from flexgroup.properties.kernels.grouping import runs
from flexgroup.trace.history import Ints
from flexgroup.trace.schema import DELIVER, MULTICAST

ROWS_AT_ONCE = 1 << 19

MIX = np.uint64(0x9E3779B97F4A7C15)


def part_of(message: Ints, parts: int) -> Ints:
    """Assign each message to a part, as if by chance and always in the same way."""
    mixed = (message.astype(np.uint64) * MIX) >> np.uint64(33)
    return (mixed % np.uint64(parts)).astype(np.int64)


def partition_deliveries(parts: int) -> Stage:
    """Return the stage that packs process, step, time and message by run and part."""

    def packed(table: pa.Table) -> list[PackedRow]:
        columns = [_column(table, name) for name in ("process", "step", "time", "message")]
        number, message = _column(table, "number"), columns[-1]
        key = number * parts + part_of(message, parts)
        return [
            (place % parts, place // parts, DELIVER, pack(column[rows] for column in columns))
            for place, rows in by_key(key)
        ]

    return _in_chunks(packed)


def partition_multicasts(parts: int) -> Stage:
    """Return the same stage for multicasts, with the number of destinations as fifth column; the
    destinations themselves follow."""

    def packed(table: pa.Table) -> list[PackedRow]:
        number, message = _column(table, "number"), _column(table, "message")
        lists = table.column("destinations").combine_chunks()
        length = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        targets = lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
        ends = np.cumsum(length)
        columns = [
            *(_column(table, name) for name in ("process", "step", "time")),
            message,
            length,
        ]
        found = []
        for place, rows in by_key(number * parts + part_of(message, parts)):
            chosen, _ = runs(ends[rows] - length[rows], ends[rows])
            head = np.array([len(rows)], dtype=np.int64).tobytes()
            payload = head + pack(column[rows] for column in columns) + targets[chosen].tobytes()
            found.append((place % parts, place // parts, MULTICAST, payload))
        return found

    return _in_chunks(packed)


def _in_chunks(packed: Callable[[pa.Table], list[PackedRow]]) -> Stage:
    def stage(batches: Batches) -> Batches:
        waiting: list[pa.RecordBatch] = []
        rows = 0
        for batch in batches:
            waiting.append(batch)
            rows += batch.num_rows
            if rows >= ROWS_AT_ONCE:
                yield packed_batch(packed(pa.Table.from_batches(waiting)))
                waiting, rows = [], 0
        if rows:
            yield packed_batch(packed(pa.Table.from_batches(waiting)))

    return stage


def _column(table: pa.Table, name: str) -> Ints:
    column: Ints = table.column(name).to_numpy().astype(np.int64)
    return column
