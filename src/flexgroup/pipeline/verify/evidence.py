"""The events behind violations: all that happened to the messages of each witness."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from flexgroup.trace import schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexgroup.pipeline.read import TraceSet

SHOWN = 50
"""Violated properties of a trace set that get their events, those of the first runs by name."""

COLUMNS = (
    "process", "step", "time", "origin", "seq", "destinations", "peer", "packet", "depth",
    "sent", "detail",
)  # fmt: skip


def evidence(traces: TraceSet, verdicts: DataFrame) -> DataFrame:
    """Run, property, event and COLUMNS of the events about messages in witnesses."""
    from pyspark.sql import functions as f

    witness = f.from_json("witness", "array<struct<message:string>>")
    violated = verdicts.where("outcome = 'violated'").orderBy("run", "property").limit(SHOWN)
    messages = (
        violated.select("run", "property", f.explode(witness).alias("step"))
        .select("run", "property", f.split("step.message", "\\.").alias("name"))
        .select(
            "run",
            "property",
            f.col("name")[0].cast("int").alias("origin"),
            f.col("name")[1].cast("bigint").alias("seq"),
        )
        .distinct()
    )
    kinds = (schema.MULTICAST, schema.SEND, schema.RECEIVE, schema.DELIVER)
    parts = [
        traces.events(kind, "run", *COLUMNS)
        .join(f.broadcast(messages), ["run", "origin", "seq"])
        .select("run", "property", f.lit(kind).alias("event"), *COLUMNS)
        for kind in kinds
    ]
    return reduce(lambda one, other: one.unionAll(other), parts)
