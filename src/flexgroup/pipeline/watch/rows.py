"""Rows of events as they are kept, and as the history that they tell."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from flexgroup.trace import schema
from flexgroup.trace.history import Deliveries, Faults, History, Ints, Multicasts

CODES = {kind: code for code, kind in enumerate(schema.KINDS)}

COLUMNS = pa.schema(
    [
        pa.field("event", pa.int8()),
        pa.field("process", pa.int32()),
        pa.field("step", pa.int64()),
        pa.field("time", pa.int64()),
        pa.field("message", pa.int64()),
        pa.field("destinations", pa.list_(pa.int32())),
    ]
)
"""`event` is the code of a kind, `message` an identity packed in one integer."""

NOTHING = -1
"""In place of a null."""


def integers(rows: pa.Table, name: str) -> Ints:
    column = rows.column(name)
    if column.null_count:
        column = column.fill_null(NOTHING)
    values: Ints = column.to_numpy().astype(np.int64, copy=False)
    return values


def history_of(rows: pa.Table, run: str, complete: bool) -> History:
    """The history of a run, or of some of its messages; how many processes is left open."""
    multicasts, deliveries, crashes = (
        _sorted(rows, kind) for kind in (schema.MULTICAST, schema.DELIVER, schema.CRASH)
    )
    lists = multicasts.column("destinations").combine_chunks()
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    targets = lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
    return History(
        run,
        0,
        complete,
        Multicasts(*_about_messages(multicasts), offsets, targets),
        Deliveries(*_about_messages(deliveries)),
        crashes=Faults(*_about_messages(crashes)[:3]),
    )


def _about_messages(rows: pa.Table) -> tuple[Ints, Ints, Ints, Ints]:
    process, step = integers(rows, "process"), integers(rows, "step")
    return process, step, integers(rows, "time"), integers(rows, "message")


def _sorted(rows: pa.Table, kind: str) -> pa.Table:
    """The rows of one kind by (process, step)."""
    chosen = np.flatnonzero(integers(rows, "event") == CODES[kind])
    process, step = integers(rows, "process")[chosen], integers(rows, "step")[chosen]
    return rows.take(pa.array(chosen[np.lexsort((step, process))]))
