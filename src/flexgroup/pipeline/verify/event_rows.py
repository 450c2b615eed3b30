"""The events that verification looks at, as one DataFrame."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from flexgroup.core.message import NO_MESSAGE, ORIGIN_BITS
from flexgroup.pipeline.in_memory.event_rows import CODES, EVENT_ROWS
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import union, with_columns
from flexgroup.trace import schema

ORDERS = (schema.MULTICAST, schema.DELIVER)
FAULTS = (schema.CRASH, schema.RECOVER)
PACKETS = (schema.SEND, schema.RECEIVE)

COLUMNS = EVENT_ROWS.insert(0, pa.field("number", pa.int32()))
"""The events of several runs."""

EXPLAINED_COLUMNS = pa.schema(
    [
        *COLUMNS,
        ("peer", pa.int32()),
        *((name, pa.string()) for name in ("packet", "detail", "name")),
    ]
)
"""The columns that explanations and views need besides."""

HAVE = {
    schema.MULTICAST: ("destinations", "name"),
    schema.DELIVER: ("name",),
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
