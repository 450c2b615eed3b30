"""Means over repetitions, with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from flexgroup.metrics.confidence import LARGE, STUDENT_95, TAIL
from flexgroup.pipeline.measure.runs import METRICS, POINT
from flexgroup.trace import schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

HALF_WIDTH = "_ci95"


def points(measures: DataFrame, metrics: Sequence[str] = METRICS) -> DataFrame:
    """One row for each point: what its runs have in common, how many there are, how many of them
    were cut, and of each metric the mean and, as `..._ci95`, half the width of the 95% confidence
    interval (null for a single run)."""
    # A row for each metric, and columns again at the end: a hundred aggregates side by side would
    # take longer to compile than to compute.
    each = [
        f.struct(f.lit(name).alias("metric"), f.col(name).cast("double").alias("value"))
        for name in metrics
    ]
    is_cut = (f.col("outcome") == schema.CUT).alias("is_cut")
    summed_up = (
        measures.repartition(*POINT)
        .select(*POINT, is_cut, f.inline(f.array(*each)))
        .groupBy(*POINT, "metric")
        .agg(
            f.count("*").alias("runs"),
            f.count_if("is_cut").alias("cut_runs"),
            f.struct(f.avg("value").alias("mean"), _half_width("value").alias("half_width")).alias(
                "interval"
            ),
        )
        .groupBy(*POINT)
        .agg(
            f.max("runs").alias("runs"),
            f.max("cut_runs").alias("cut_runs"),
            f.map_from_entries(f.collect_list(f.struct("metric", "interval"))).alias("intervals"),
        )
    )
    columns: list[Column] = []
    for name in metrics:
        interval = f.col("intervals")[name]
        columns += [
            interval["mean"].alias(name),
            interval["half_width"].alias(name + HALF_WIDTH),
        ]
    return summed_up.select(*POINT, "runs", "cut_runs", *columns)


def _half_width(name: str) -> Column:
    repetitions = f.count(name)
    freedom = repetitions - 1
    tail = f.lit(TAIL[0])
    for power, coefficient in enumerate(TAIL[1:], start=1):
        tail += coefficient / f.pow(freedom, f.lit(power))
    table = f.lit(list(STUDENT_95))
    student = f.when(freedom <= LARGE, f.get(table, freedom.cast("int") - 1)).otherwise(tail)
    return f.when(freedom > 0, student * f.stddev_samp(name) / f.sqrt(repetitions))
