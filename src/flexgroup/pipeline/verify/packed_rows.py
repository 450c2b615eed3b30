"""Many rows packed into one, which is how arrays travel between stages.

A shuffle costs by the row. So rows that go to the same place are packed into one, as the bytes of
their columns, and Spark moves a few large rows instead of millions of small ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

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


def pack(columns: Iterable[Ints]) -> bytes:
    return np.stack([column.astype(np.int64, copy=False) for column in columns]).tobytes()


def unpack(payloads: Iterable[bytes], columns: int) -> list[Ints]:
    """Return the columns of several payloads, one after the other."""
    parts = [np.frombuffer(payload, dtype=np.int64).reshape(columns, -1) for payload in payloads]
    if not parts:
        return [np.empty(0, dtype=np.int64)] * columns
    return list(np.concatenate(parts, axis=1))


def packed_batch(packed: list[PackedRow]) -> pa.RecordBatch:
    columns = zip(*packed, strict=True) if packed else ((), (), (), ())
    arrays = [
        pa.array(list(column), field.type)
        for column, field in zip(columns, PACKED_ROWS, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=PACKED_ROWS)


def received_by_run(batches: Batches) -> dict[int, dict[str, list[tuple[int, bytes]]]]:
    """Return what has arrived: for each run and kind, places and payloads."""
    arrived: dict[int, dict[str, list[tuple[int, bytes]]]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            kinds = arrived.setdefault(row["number"], {})
            kinds.setdefault(row["kind"], []).append((row["place"], row["payload"]))
    return arrived


def by_key(key: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield each key with its rows."""
    order = np.argsort(key, kind="stable")
    found, starts = np.unique(key[order], return_index=True)
    bounds = np.append(starts, len(key)).tolist()
    for value, start, end in zip(found.tolist(), bounds[:-1], bounds[1:], strict=True):
        yield value, order[start:end]
