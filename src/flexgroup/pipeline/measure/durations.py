"""Means and percentiles of durations, from histograms that do not grow with the trace.

A histogram has a row for each class of durations that occurs; a class is a thousandth wide. Sums
and largest values are kept exactly, so means and maxima are exact, and a percentile is a duration
that did occur, at most a thousandth above the exact one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

from flexgroup.pipeline.measure.facts import SECOND

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CLASSES_PER_E_FOLD = 1024
PERCENTILES = (50, 95, 99)
STATISTICS = ("mean", "trimmed", *(f"p{percent}" for percent in PERCENTILES), "max")

TRIMMED = 20
"""One part in so many is dropped at either end: 5%."""


def statistics(durations: DataFrame, counted: Iterable[str]) -> DataFrame:
    """The STATISTICS of the column `duration` (nanoseconds or null) of each run `number` and
    `kind` of duration, in seconds; how many there are, and the sums of the columns `counted`."""
    duration = f.col("duration")
    fold = f.log(f.greatest(duration, f.lit(1)))
    sums = [f.sum(name).alias(name) for name in counted]
    classes = durations.groupBy(
        "number", "kind", f.floor(fold * CLASSES_PER_E_FOLD).alias("class")
    ).agg(
        f.count(duration).alias("count"),
        f.sum(duration).alias("sum"),
        f.max(duration).alias("largest"),
        *sums,
    )
    here = Window.partitionBy("number", "kind")
    # The row without a class comes first, and counts nothing.
    upward = here.orderBy("class").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ranked = (
        # What follows goes by run, so the classes of a run may as well be in one place at once.
        classes.repartition("number").withColumns(
            {"up_to": f.sum("count").over(upward), "all": f.sum("count").over(here)}
        )
    )
    dropped = f.floor(f.col("all") / TRIMMED)
    kept = f.greatest(
        f.lit(0),
        f.least(f.col("up_to"), f.col("all") - dropped)
        - f.greatest(f.col("up_to") - f.col("count"), dropped),
    )
    kept_sum = f.col("sum") / f.col("count") * kept
    told: dict[str, Column] = {
        "mean": f.sum("sum") / _some(f.sum("count")),
        "trimmed": f.sum(kept_sum) / _some(f.sum(kept)),
        **{f"p{percent}": _percentile(percent) for percent in PERCENTILES},
        "max": f.max("largest"),
    }
    return ranked.groupBy("number", "kind").agg(
        *((statistic / SECOND).alias(name) for name, statistic in told.items()),
        f.sum("count").alias("count"),
        *sums,
    )


def _percentile(percent: int) -> Column:
    """The smallest duration that `percent` of 100 are not above, by nearest rank."""
    reached = f.col("up_to") * 100 >= f.col("all") * percent
    return f.min(f.when(reached, f.col("largest")))


def _some(count: Column) -> Column:
    """A count to divide by: null instead of zero."""
    return f.nullif(count, f.lit(0))


def of_kind(kind: str, column: str) -> Column:
    """The value of a column in the row of this kind, where a run has one row for each kind."""
    return f.max(f.when(f.col("kind") == kind, f.col(column)))
