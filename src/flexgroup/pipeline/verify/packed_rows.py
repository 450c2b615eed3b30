"""Many rows packed into one, which is how events and arrays travel between stages.

A shuffle costs by the row. So rows that go to the same place are packed into one, as the bytes of
their columns, and Spark moves a few large rows instead of millions of small ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from flexgroup.trace.history import Ints, by_key, no_ints
from flexgroup.trace.reader import ints

Batches = Iterator[pa.RecordBatch]
Stage = Callable[[Batches], Batches]

PACKED_ROWS = pa.schema(
    [
        pa.field("place", pa.int32()),
        pa.field("number", pa.int32()),
        pa.field("kind", pa.string()),
        pa.field("payload", pa.binary()),
    ]
)

PackedRow = tuple[int, int, str, bytes]

ROWS_AT_ONCE = 1 << 19

MIX = np.uint64(0x9E3779B97F4A7C15)


def pack(columns: Iterable[Ints]) -> bytes:
    return np.stack([column.astype(np.int64, copy=False) for column in columns]).tobytes()


def unpack(payloads: Iterable[bytes], columns: int) -> list[Ints]:
    """Return the columns of several payloads, one after the other."""
    parts = [np.frombuffer(payload, dtype=np.int64).reshape(columns, -1) for payload in payloads]
    return list(np.concatenate(parts, axis=1)) if parts else [no_ints()] * columns


def pack_table(table: pa.Table | pa.RecordBatch) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write(table)
    packed: bytes = out.getvalue().to_pybytes()
    return packed


def unpack_table(payload: bytes) -> pa.Table:
    return pa.ipc.open_stream(payload).read_all()


def packed_batch(packed: Iterable[PackedRow]) -> pa.RecordBatch:
    rows = [dict(zip(PACKED_ROWS.names, row, strict=True)) for row in packed]
    return pa.RecordBatch.from_pylist(rows, PACKED_ROWS)


def received_by_run(batches: Batches) -> dict[int, dict[str, list[tuple[int, bytes]]]]:
    """Return what has arrived: for each run and kind, places and payloads."""
    arrived: dict[int, dict[str, list[tuple[int, bytes]]]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            kinds = arrived.setdefault(row["number"], {})
            kinds.setdefault(row["kind"], []).append((row["place"], row["payload"]))
    return arrived


def partition(kind: str, parts: int) -> Stage:
    """Return the stage that packs events of one kind by run and by the part of the messages that
    they are about."""

    def packed(waiting: list[pa.RecordBatch]) -> pa.RecordBatch:
        events = pa.Table.from_batches(waiting).combine_chunks().to_batches()[0]
        keys = ints(events, "number") * parts + _part_of(ints(events, "message"), parts)
        return packed_batch(
            (key % parts, key // parts, kind, pack_table(events.take(pa.array(rows))))
            for key, rows in by_key(keys)
        )

    def stage(batches: Batches) -> Batches:
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(some.num_rows for some in waiting) >= ROWS_AT_ONCE:
                yield packed(waiting)
                waiting = []
        if any(some.num_rows for some in waiting):
            yield packed(waiting)

    return stage


def _part_of(message: Ints, parts: int) -> Ints:
    """Assign each message to a part, as if by chance and always in the same way."""
    mixed = (message.astype(np.uint64) * MIX) >> np.uint64(33)
    return (mixed % np.uint64(parts)).astype(np.int64)
