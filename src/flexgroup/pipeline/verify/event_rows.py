"""The events that verification looks at, as one DataFrame, and back as a history in memory.

A message's identity travels packed in one integer, as everywhere (see `flexgroup.core.message`).
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from flexgroup.core.message import NO_MESSAGE, ORIGIN_BITS
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import union, with_columns
from flexgroup.trace import schema
from flexgroup.trace.history import History, Ints, RunFacts
from flexgroup.trace.reader import history_of, ints

ORDERS = (schema.MULTICAST, schema.DELIVER)
FAULTS = (schema.CRASH, schema.RECOVER)
PACKETS = (schema.SEND, schema.RECEIVE)

CODES = {kind: code for code, kind in enumerate(schema.KINDS)}

NOTHING = -1
"""Stands in place of a null."""

EVENT_ROWS = pa.schema(
    [
        pa.field("event", pa.int8()),
        pa.field("process", pa.int32()),
        pa.field("step", pa.int64()),
        pa.field("time", pa.int64()),
        pa.field("message", pa.int64()),
        pa.field("destinations", pa.list_(pa.int32())),
    ]
)
"""The events of one run: `event` is the code of a kind; what only packets and views have is left
out."""

COLUMNS = EVENT_ROWS.insert(0, pa.field("number", pa.int32()))
"""The events of several runs."""

EXPLAINED_COLUMNS = pa.schema(
    [*COLUMNS, ("peer", pa.int32()), ("packet", pa.string()), ("detail", pa.string())]
)
"""The columns that explanations and views need besides."""

HAVE = {
    schema.MULTICAST: ("destinations",),
    schema.SEND: ("peer", "packet"),
    schema.RECEIVE: ("peer", "packet"),
    schema.VIEW: ("detail",),
}
"""The columns that only some kinds of events fill."""


def packed_message() -> Column:
    packed = f.shiftleft("seq", ORIGIN_BITS).bitwiseOR(f.col("origin").cast("bigint"))
    return f.coalesce(packed, f.lit(NO_MESSAGE).cast("bigint"))


def event_rows(traces: TraceSet, kinds: Iterable[str], wanted: pa.Schema = COLUMNS) -> DataFrame:
    """Return the events of these kinds with the wanted columns."""
    return union(
        with_columns(
            traces.events(kind, "process", "step", "time", "origin", "seq", *HAVE.get(kind, ()))
            .withColumn("event", f.lit(CODES[kind]))
            .withColumn("message", packed_message()),
            wanted,
        )
        for kind in kinds
    )


def history_of_rows(rows: pa.Table, about: RunFacts) -> History:
    """Return the history that rows of events tell: a whole run, or what concerns some messages."""
    return history_of(lambda kind: rows.filter(pc.field("event") == CODES[kind]), about)


def integers(rows: pa.Table, name: str) -> Ints:
    """Return a column of rows, with NOTHING in place of nulls."""
    return ints(rows, name, NOTHING)
