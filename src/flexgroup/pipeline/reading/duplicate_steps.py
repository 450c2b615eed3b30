"""Steps that a process took more than once: two runs are mixed under one name."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import nothing, union
from flexgroup.trace.run_events import mixed_runs

COLUMNS = pa.schema(
    {"number": pa.int32(), "process": pa.int32(), "step": pa.int64(), "rows": pa.int64()}
)

MOST_BLOCKS = 100_000
"""So many blocks of 64 steps are looked at again, at most: one step taken twice is enough."""


def duplicate_steps(traces: TraceSet, numbers: Sequence[int] | None = None) -> DataFrame:
    """Return the steps that a process took more than once: `number`, `process`, `step`, and `rows`;
    in the runs of these numbers, or in all.

    There are none in a sound trace; there are where two runs with the same name were mixed. The
    steps of a process are first counted in blocks of 64, each a bit of one integer, and only
    blocks with more rows than bits are looked at again. There are few, if any, so that they are
    brought to the events: what is shuffled is a fraction of these.
    """
    parts = [traces.events(kind, "process", "step") for kind in sorted(traces.kinds)]
    if not parts:
        return nothing(traces.spark, COLUMNS)
    block = ["number", "process", "block"]
    steps = union(parts).withColumn("block", f.expr("shiftright(step, 6)"))
    if numbers is not None:
        steps = steps.where(f.col("number").isin(list(numbers)))
    crowded = (
        steps.groupBy(block)
        .agg(
            f.count("*").alias("rows"),
            f.expr("bit_or(shiftleft(1L, int(pmod(step, 64L))))").alias("bits"),
        )
        .where("rows > bit_count(bits)")
        .select(block)
        .limit(MOST_BLOCKS)
    )
    return (
        steps.join(f.broadcast(crowded), block, "left_semi")
        .groupBy("number", "process", "step")
        .agg(f.count("*").alias("rows"))
        .where("rows > 1")
    )


def refuse_duplicate_steps(traces: TraceSet, numbers: Sequence[int]) -> None:
    """Raise a UsageError if there are any in these runs; all their events are read with Spark."""
    for row in duplicate_steps(traces, numbers).limit(1).collect():
        run = traces.described[row["number"]].run
        raise mixed_runs(run, row["process"], row["step"], row["rows"])
