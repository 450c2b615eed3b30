"""Stage zero for large runs: events packed by the part of the messages that they are about."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from flexgroup.pipeline.verify.parcels import (
    Batches,
    Parcel,
    Stage,
    by_key,
    pack,
    parcel_batch,
)
from flexgroup.properties.kernels.rows import runs
from flexgroup.trace.history import Ints
from flexgroup.trace.schema import DELIVER, MULTICAST

ROWS_AT_ONCE = 1 << 19

MIX = np.uint64(0x9E3779B97F4A7C15)


def part_of(message: Ints, parts: int) -> Ints:
    """Messages spread over the parts as if by chance, always in the same way."""
    mixed = (message.astype(np.uint64) * MIX) >> np.uint64(33)
    return (mixed % np.uint64(parts)).astype(np.int64)


def split_deliveries(parts: int) -> Stage:
    """From number, process, step, time and message to parcels of the last four."""

    def parcels(table: pa.Table) -> list[Parcel]:
        columns = [_column(table, name) for name in ("process", "step", "time", "message")]
        number, message = _column(table, "number"), columns[-1]
        key = number * parts + part_of(message, parts)
        return [
            (place % parts, place // parts, DELIVER, pack(column[rows] for column in columns))
            for place, rows in by_key(key)
        ]

    return _in_chunks(parcels)


def split_multicasts(parts: int) -> Stage:
    """The same for multicasts, with the length of the list of destinations as fifth column; the
    destinations themselves follow."""

    def parcels(table: pa.Table) -> list[Parcel]:
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

    return _in_chunks(parcels)


def _in_chunks(parcels: Callable[[pa.Table], list[Parcel]]) -> Stage:
    def stage(batches: Batches) -> Batches:
        waiting: list[pa.RecordBatch] = []
        rows = 0
        for batch in batches:
            waiting.append(batch)
            rows += batch.num_rows
            if rows >= ROWS_AT_ONCE:
                yield parcel_batch(parcels(pa.Table.from_batches(waiting)))
                waiting, rows = [], 0
        if rows:
            yield parcel_batch(parcels(pa.Table.from_batches(waiting)))

    return stage


def _column(table: pa.Table, name: str) -> Ints:
    column: Ints = table.column(name).to_numpy().astype(np.int64)
    return column
