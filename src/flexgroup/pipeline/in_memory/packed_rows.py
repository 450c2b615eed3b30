"""Many rows packed into one, which is how events and arrays travel between stages.

A shuffle costs by the row, and then by the byte. So rows that go to the same place are packed into
one, column by column, each in as few bytes as its values need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from flexgroup.trace.history import Ints

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

WIDTHS: dict[int, type[np.unsignedinteger[Any]]] = {1: np.uint8, 2: np.uint16, 4: np.uint32}
"""The types for columns whose values do not lie far apart; others stay as they are."""


@dataclass(frozen=True)
class NarrowColumn:
    """Integers as distances from the least of them, in as few bytes as the largest needs."""

    least: int
    distances: NDArray[Any]

    def part(self, start: int, end: int) -> NarrowColumn:
        return NarrowColumn(self.least, self.distances[start:end])


def narrow(column: Ints) -> NarrowColumn:
    if len(column) == 0:
        return NarrowColumn(0, np.empty(0, dtype=np.uint8))
    least = int(column.min())
    span = int(column.max()) - least
    for width, narrower in WIDTHS.items():
        if span < 1 << 8 * width:
            return NarrowColumn(least, (column - least).astype(narrower))
    return NarrowColumn(0, column)


def pack(columns: Iterable[Ints]) -> bytes:
    """Pack columns, which need not be of the same length."""
    return pack_narrow([narrow(column) for column in columns])


def pack_narrow(columns: Sequence[NarrowColumn]) -> bytes:
    header = [(each.least, each.distances.itemsize, len(each.distances)) for each in columns]
    described = np.array(header, dtype=np.int64).tobytes()
    return b"".join([described, *(each.distances.tobytes() for each in columns)])


def unpack(payloads: Iterable[Any], columns: int) -> list[Ints]:
    """Return the columns of several payloads, each with one payload's after the other's."""
    unpacked = [_unpacked(payload, columns) for payload in payloads]
    return [_joined([parts[place] for parts in unpacked]) for place in range(columns)]


def _unpacked(payload: Any, columns: int) -> list[NarrowColumn]:
    header = np.frombuffer(payload, dtype=np.int64, count=3 * columns).reshape(columns, 3)
    offset, found = header.nbytes, []
    for least, width, count in header.tolist():
        kind = WIDTHS.get(width, np.int64)
        found.append(NarrowColumn(least, np.frombuffer(payload, kind, count, offset)))
        offset += width * count
    return found


def _joined(parts: list[NarrowColumn]) -> Ints:
    whole = np.empty(sum(len(part.distances) for part in parts), dtype=np.int64)
    start = 0
    for part in parts:
        end = start + len(part.distances)
        whole[start:end] = part.distances
        whole[start:end] += part.least
        start = end
    return whole


def pack_table(table: pa.Table | pa.RecordBatch) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write(table)
    packed: bytes = out.getvalue().to_pybytes()
    return packed


def unpack_table(payload: bytes) -> pa.Table:
    return pa.ipc.open_stream(payload).read_all()


def packed_batch(packed: Iterable[PackedRow]) -> pa.RecordBatch:
    columns = [*zip(*packed, strict=True)] or [()] * len(PACKED_ROWS)
    arrays = [
        pa.array(values, field.type) for values, field in zip(columns, PACKED_ROWS, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=PACKED_ROWS)


def received_by_run(batches: Batches) -> dict[int, dict[str, list[tuple[int, pa.Buffer]]]]:
    """Return what has arrived: for each run and kind, places and payloads."""
    arrived: dict[int, dict[str, list[tuple[int, pa.Buffer]]]] = {}
    for batch in batches:
        places, numbers, kinds, payloads = batch.columns
        told = zip(places.to_pylist(), numbers.to_pylist(), kinds.to_pylist(), strict=True)
        for row, (place, number, kind) in enumerate(told):
            # A view of the batch: what has arrived is not copied.
            payload = payloads[row].as_buffer()
            arrived.setdefault(number, {}).setdefault(kind, []).append((place, payload))
    return arrived
