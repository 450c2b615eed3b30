"""The sums of runs of any length: a row for each run of a trace set, all in one job."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from flexgroup.metrics.durations import CLASSES_PER_E_FOLD, Histogram
from flexgroup.metrics.sums import DURATION_SUMS, KINDS, MESSAGE_SUMS, SUMS, duration_sums
from flexgroup.pipeline.measure.facts import run_facts
from flexgroup.pipeline.measure.spark_messages import delivery_latencies, message_latencies
from flexgroup.pipeline.measure.spark_packets import packet_sums
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import spark_schema
from flexgroup.trace import schema

NUMBERED = pa.schema([("number", pa.int32()), *DURATION_SUMS])


def sums_of_runs(traces: TraceSet) -> DataFrame:
    """Return the SUMS of every run."""
    facts = run_facts(traces)
    latencies = message_latencies(traces, facts).unionByName(
        delivery_latencies(traces, facts), allowMissingColumns=True
    )
    by_run = _classes(latencies).groupBy("number").applyInArrow(_summed, spark_schema(NUMBERED))
    return (
        traces.runs.select("run", "number")
        .join(facts.select("number", "length"), "number")
        .join(by_run, "number", "left")
        .join(packet_sums(traces, facts), "number", "left")
        .join(_crashed(traces), "number", "left")
        .select(*SUMS.names)
    )


def _classes(durations: DataFrame) -> DataFrame:
    """Return the histogram of the column `duration` (nanoseconds or null) for each run `number` and
    `kind` of duration, a row for each class; and the MESSAGE_SUMS."""
    duration = f.col("duration")
    fold = f.log(f.greatest(duration, f.lit(1)))
    return durations.groupBy(
        "number", "kind", f.floor(fold * CLASSES_PER_E_FOLD).alias("class")
    ).agg(
        f.count(duration).alias("count"),
        f.sum(duration).alias("total"),
        f.max(duration).alias("largest"),
        *(f.sum(name).alias(name) for name in MESSAGE_SUMS),
    )


def _summed(classes: pa.Table) -> pa.Table:
    """Return one row from all classes of a run."""
    # What has no duration is in the first class, too, and counts nothing there.
    some = classes.filter(pc.greater(classes["count"], 0)).sort_by("class")
    histograms = {}
    for kind in KINDS:
        rows = some.filter(pc.equal(some["kind"], kind))
        count, total, largest = (
            rows[name].to_numpy().astype(np.int64) for name in ("count", "total", "largest")
        )
        histograms[kind] = Histogram(count, total, largest)
    row = {
        "number": classes["number"][0].as_py(),
        **{name: pc.sum(classes[name]).as_py() for name in MESSAGE_SUMS},
        **duration_sums(histograms),
    }
    return pa.Table.from_pylist([row], NUMBERED)


def _crashed(traces: TraceSet) -> DataFrame:
    """Count the processes that crash in each run in which any does."""
    crashes = traces.events(schema.CRASH, "process")
    return f.broadcast(crashes.groupBy("number").agg(f.count_distinct("process").alias("crashed")))
