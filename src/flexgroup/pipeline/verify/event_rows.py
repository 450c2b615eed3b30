"""The events that verification looks at, as one DataFrame, and back as a history in memory.

A message's identity travels packed in one integer, as everywhere (see `flexgroup.core.message`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from flexgroup.core.message import NO_MESSAGE, ORIGIN_BITS
from flexgroup.trace import schema
from flexgroup.trace.history import (
    Deliveries,
    Faults,
    History,
    Ints,
    Lost,
    Multicasts,
    Packets,
    Views,
    views_of,
)
from flexgroup.trace.views import parse_view

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from flexgroup.pipeline.reading.trace_set import TraceSet

ORDERS = (schema.MULTICAST, schema.DELIVER)
FAULTS = (schema.CRASH, schema.RECOVER)
PACKETS = (schema.SEND, schema.RECEIVE)

CODES = {kind: code for code, kind in enumerate(schema.KINDS)}

NOTHING = -1
"""Stands in place of a null."""

COLUMNS = {
    "number": "int",
    "event": "byte",
    "process": "int",
    "step": "bigint",
    "time": "bigint",
    "message": "bigint",
    "destinations": "array<int>",
}
EXPLAINED_COLUMNS = {**COLUMNS, "peer": "int", "packet": "string", "detail": "string"}
"""The columns that explanations and views need besides."""

HAVE = {
    schema.MULTICAST: ("destinations",),
    schema.SEND: ("peer", "packet"),
    schema.RECEIVE: ("peer", "packet"),
    schema.VIEW: ("detail",),
}
"""The columns that only some kinds of events fill."""


def packed_message() -> Column:
    from pyspark.sql import functions as f

    packed = f.shiftleft("seq", ORIGIN_BITS).bitwiseOR(f.col("origin").cast("bigint"))
    return f.coalesce(packed, f.lit(NO_MESSAGE).cast("bigint"))


def event_rows(
    traces: TraceSet, kinds: Iterable[str], wanted: Mapping[str, str] = COLUMNS
) -> DataFrame:
    """Return the events of these kinds with the wanted columns."""
    frames = [_rows_of_kind(traces, kind, wanted) for kind in kinds]
    return reduce(lambda one, other: one.unionAll(other), frames)


def _rows_of_kind(traces: TraceSet, kind: str, wanted: Mapping[str, str]) -> DataFrame:
    from pyspark.sql import functions as f

    present = [name for name in HAVE.get(kind, ()) if name in wanted]
    frame = traces.events(kind, "process", "step", "time", "origin", "seq", *present)
    made = {"event": f.lit(CODES[kind]).cast("byte"), "message": packed_message()}
    plain = {"number", "process", "step", "time", *present}
    return frame.select(
        *(
            f.col(name) if name in plain else made.get(name, f.lit(None).cast(kind_of)).alias(name)
            for name, kind_of in wanted.items()
        )
    )


def history_of(
    table: pa.Table,
    run: str,
    processes: int,
    complete: bool,
    lost: Lost = (),
    faulty: tuple[int, ...] = (),
) -> History:
    """Return the history that rows of events tell: a whole run, or what concerns some messages.

    Without the columns that only packets or views have, there are none of these.
    """
    return History(
        run,
        processes,
        complete,
        _multicasts(table),
        _deliveries(table),
        _packets(table, schema.SEND),
        _packets(table, schema.RECEIVE),
        _faults(table, schema.CRASH),
        _faults(table, schema.RECOVER),
        _views(table),
        lost,
        faulty,
    )


def integers(table: pa.Table, name: str) -> Ints:
    column = table.column(name)
    if column.null_count:
        column = column.fill_null(NOTHING)
    values: Ints = column.to_numpy().astype(np.int64, copy=False)
    return values


class _Kind:
    """The rows of one kind of event, by (process, step)."""

    def __init__(self, table: pa.Table, kind: str) -> None:
        rows = np.flatnonzero(integers(table, "event") == CODES[kind])
        process, step = integers(table, "process")[rows], integers(table, "step")[rows]
        self.rows = rows[np.lexsort((step, process))]
        self._table = table

    def column(self, name: str) -> Ints:
        return integers(self._table, name)[self.rows]

    def taken(self, name: str) -> pa.Array:
        return self._table.column(name).combine_chunks().take(pa.array(self.rows))


def _multicasts(table: pa.Table) -> Multicasts:
    kind = _Kind(table, schema.MULTICAST)
    lists = kind.taken("destinations")
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(kind.rows) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    targets = lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
    return Multicasts(
        kind.column("process"),
        kind.column("step"),
        kind.column("time"),
        kind.column("message"),
        offsets,
        targets,
    )


def _deliveries(table: pa.Table) -> Deliveries:
    kind = _Kind(table, schema.DELIVER)
    return Deliveries(
        kind.column("process"), kind.column("step"), kind.column("time"), kind.column("message")
    )


def _packets(table: pa.Table, kind_name: str) -> Packets:
    if "packet" not in table.column_names:
        return Packets()
    kind = _Kind(table, kind_name)
    names = kind.taken("packet").dictionary_encode()
    return Packets(
        kind.column("process"),
        kind.column("step"),
        kind.column("time"),
        kind.column("message"),
        kind.column("peer"),
        packet=tuple(names.dictionary.to_pylist()),
        packet_code=names.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64),
    )


def _faults(table: pa.Table, kind_name: str) -> Faults:
    kind = _Kind(table, kind_name)
    return Faults(kind.column("process"), kind.column("step"), kind.column("time"))


def _views(table: pa.Table) -> Views:
    if "detail" not in table.column_names:
        return Views()
    kind = _Kind(table, schema.VIEW)
    installed = [parse_view(detail) for detail in kind.taken("detail").to_pylist()]
    return views_of(kind.column("process"), kind.column("step"), kind.column("time"), installed)
