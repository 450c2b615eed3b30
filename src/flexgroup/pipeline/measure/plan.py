"""The sums of runs of any length: one row a run, all runs of a trace set in one job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f

from flexgroup.pipeline.measure.deliveries import delivery_latencies
from flexgroup.pipeline.measure.durations import CLASSES_PER_E_FOLD, Histogram
from flexgroup.pipeline.measure.facts import run_facts
from flexgroup.pipeline.measure.messages import message_latencies
from flexgroup.pipeline.measure.sums import DURATIONS, KINDS, OF_MESSAGES, SUMS, of_durations
from flexgroup.pipeline.measure.traffic import traffic
from flexgroup.pipeline.read import spark_schema
from flexgroup.trace import schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexgroup.pipeline.read import TraceSet

NUMBERED = pa.schema([("number", pa.int32()), *DURATIONS])


def sums_of_runs(traces: TraceSet) -> DataFrame:
    """The SUMS of every run."""
    facts = run_facts(traces)
    latencies = message_latencies(traces, facts).unionByName(
        delivery_latencies(traces, facts), allowMissingColumns=True
    )
    by_run = _classes(latencies).groupBy("number").applyInArrow(_summed, spark_schema(NUMBERED))
    return (
        traces.runs.select("run", "number")
        .join(facts.select("number", "length"), "number")
        .join(by_run, "number", "left")
        .join(traffic(traces, facts), "number", "left")
        .join(_crashed(traces), "number", "left")
        .select(*SUMS.names)
    )


def _classes(durations: DataFrame) -> DataFrame:
    """The histogram of the column `duration` (nanoseconds or null) of each run `number` and `kind`
    of duration, a row for each class; and the sums of what is counted OF_MESSAGES."""
    duration = f.col("duration")
    fold = f.log(f.greatest(duration, f.lit(1)))
    return durations.groupBy(
        "number", "kind", f.floor(fold * CLASSES_PER_E_FOLD).alias("class")
    ).agg(
        f.count(duration).alias("count"),
        f.sum(duration).alias("total"),
        f.max(duration).alias("largest"),
        *(f.sum(name).alias(name) for name in OF_MESSAGES),
    )


def _summed(classes: pa.Table) -> pa.Table:
    """One row, from all classes of a run."""
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
        **{name: pc.sum(classes[name]).as_py() for name in OF_MESSAGES},
        **of_durations(histograms),
    }
    return pa.Table.from_pylist([row], NUMBERED)


def _crashed(traces: TraceSet) -> DataFrame:
    """How many processes crash in each run in which any does."""
    crashes = traces.events(schema.CRASH, "process")
    return f.broadcast(crashes.groupBy("number").agg(f.count_distinct("process").alias("crashed")))
