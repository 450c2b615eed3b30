"""All runs of a trace set, each by the way that fits its size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from flexgroup.pipeline.verify.facts import FAULTS, ORDERS, TOLD_COLUMNS, facts
from flexgroup.pipeline.verify.large_runs import crashed, large_runs
from flexgroup.pipeline.verify.layout import CELL_DELIVERIES, Layout, cell_bounds
from flexgroup.pipeline.verify.packets import minimality
from flexgroup.pipeline.verify.promises import planned
from flexgroup.pipeline.verify.telling import WHOLE, task_rows, told, with_topic
from flexgroup.properties.minimality import NAME as MINIMALITY
from flexgroup.trace.history import Ints
from flexgroup.trace.schema import DELIVER, VIEW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexgroup.pipeline.read import TraceSet

SAMPLE = 200_000
"""About so many deliveries are looked at to see which runs are large, and where to cut them."""

QUANTILES = 4096
"""At most so many cells a run is cut into."""


@dataclass(frozen=True)
class Limits:
    """When runs are cut into pieces, and how large a piece is."""

    whole_deliveries: int = 1_000_000
    cell_deliveries: int = CELL_DELIVERIES


DEFAULT_LIMITS = Limits()


def verify(
    traces: TraceSet, properties: Sequence[str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> DataFrame:
    """Verdicts on these properties, or on what the stacks promise, of every run.

    The table has the columns of `tables.VERDICTS`, a row for each run and property.
    """
    from pyspark.sql import functions as f

    plan = planned(traces.runs, properties).persist()
    large = _large(traces, plan, limits)
    # Each part reads the trace, so a part that no run needs is left out.
    verdicts = []
    if len(large) < plan.count():
        verdicts.append(_whole_runs(traces, plan, [layout.number for layout in large]))
    if large:
        verdicts.append(large_runs(traces, large))
    if not plan.where(f.array_contains("properties", MINIMALITY)).isEmpty():
        verdicts.append(minimality(traces, plan))
    return reduce(lambda one, other: one.unionAll(other), verdicts)


def _whole_runs(traces: TraceSet, plan: DataFrame, without: list[int]) -> DataFrame:
    from pyspark.sql import functions as f

    events, chosen = facts(traces, (*ORDERS, *FAULTS, VIEW), TOLD_COLUMNS), plan
    if without:
        events = events.where(~f.col("number").isin(without))
        chosen = plan.where(~f.col("number").isin(without))
    checked = f.filter("properties", lambda name: name != MINIMALITY)
    nothing = f.create_map().cast("map<string,int>")
    checks = f.map_from_arrays(checked, f.transform(checked, lambda name: nothing))
    tasks = chosen.where(f.size(checked) > 0).select(
        "number",
        f.lit(WHOLE).alias("topic"),
        f.to_json(f.struct("run", "processes", "complete", checks.alias("checks"))).alias("task"),
    )
    rows = task_rows(tasks).unionAll(with_topic(events.withColumn("topic", f.lit(WHOLE))))
    return told(rows)


def _large(traces: TraceSet, plan: DataFrame, limits: Limits) -> list[Layout]:
    """The runs that do not fit into one task, and where to cut them, from a sample."""
    from pyspark.sql import functions as f

    deliveries = traces.recorded(DELIVER)
    # Spark counts rows from the footers of files: this reads no data.
    share = min(1.0, SAMPLE / max(1, deliveries.count()))
    sample = deliveries.select("run", "time").sample(fraction=share, seed=1).limit(2 * SAMPLE)
    times: dict[str, Ints] = _by_run(sample.toArrow())
    large = [run for run in times if len(times[run]) > limits.whole_deliveries * share]
    rows = plan.where(f.col("run").isin(large)).collect() if large else []
    faulty = crashed(traces, [row.number for row in rows]) if rows else {}
    shares = np.linspace(0, 1, QUANTILES + 1)
    return [
        Layout(
            row.number,
            row.run,
            row.processes,
            row.complete,
            tuple(name for name in row.properties if name != MINIMALITY),
            round(len(times[row.run]) / share),
            faulty.get(row.number, ()),
            cell_bounds(
                np.quantile(times[row.run], shares, method="higher").astype(np.int64),
                round(len(times[row.run]) / share),
                limits.cell_deliveries,
            ),
        )
        for row in rows
    ]


def _by_run(sample: pa.Table) -> dict[str, Ints]:
    """The times of each run."""
    runs = sample.column("run").combine_chunks().dictionary_encode()
    code, time = runs.indices.to_numpy(), sample.column("time").to_numpy()
    return {name: time[code == place] for place, name in enumerate(runs.dictionary.to_pylist())}
