"""The verdicts on all runs of a trace set, each reached in the way that fits its size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from flexgroup.pipeline.in_memory.verdict_table import VERDICTS
from flexgroup.pipeline.in_memory.verdicts import judge
from flexgroup.pipeline.reading.duplicate_steps import refuse_duplicate_steps
from flexgroup.pipeline.reading.local_files import MOST_EVENTS
from flexgroup.pipeline.reading.small_runs import for_each_run
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import rows_of, union
from flexgroup.pipeline.verify.check_plans import CheckPlan, check_plans, with_lost_events
from flexgroup.pipeline.verify.event_rows import EXPLAINED_COLUMNS, FAULTS, ORDERS, event_rows
from flexgroup.pipeline.verify.large_runs import crashed, large_runs
from flexgroup.pipeline.verify.layout import CELL_DELIVERIES, Layout, cell_bounds
from flexgroup.pipeline.verify.minimality import minimality
from flexgroup.pipeline.verify.small_histories import (
    TASK_COLUMNS,
    WHOLE,
    judge_groups,
    task_of,
    task_rows,
    with_topic,
)
from flexgroup.properties.minimality import NAME as MINIMALITY
from flexgroup.trace.history import Ints
from flexgroup.trace.schema import DELIVER, VIEW

SAMPLE = 200_000
"""How many deliveries are looked at, roughly and at least, to see which runs are large and where to
cut them."""

SAMPLE_A_CELL = 16
"""How many deliveries of each cell are looked at, roughly and at least."""


@dataclass(frozen=True)
class SizeLimits:
    """When one task reads a run, when a run is cut into pieces, and how large a piece is."""

    events_from_files: int = MOST_EVENTS
    whole_deliveries: int = 1_000_000
    cell_deliveries: int = CELL_DELIVERIES


DEFAULT_LIMITS = SizeLimits()


def verify(
    traces: TraceSet,
    properties: Sequence[str] | None = None,
    limits: SizeLimits = DEFAULT_LIMITS,
    *,
    refuse_mixed: bool = False,
) -> DataFrame:
    """Check these properties, or what the stacks promise, of every run.

    The table has the columns of `verdict_table.VERDICTS`, and a row for each run and property. Runs
    that are no valid traces are refused; of runs that only Spark can hold, this goes for two that
    were mixed under one name if asked to, since that is a job of its own.
    """
    all_plans = check_plans(traces.described, properties)
    events = traces.runs_to_read(limits.events_from_files)
    verdicts = []
    if events:
        small = [plan for plan in all_plans if plan.run in events]
        verdicts.append(_small_runs(traces, small))
    plans = with_lost_events(traces, [plan for plan in all_plans if plan.run not in events])
    # Each part reads the trace, so a part that no run needs is left out.
    large = _large(traces, plans, limits) if plans else []
    cut = {layout.plan.number for layout in large}
    if len(large) < len(plans):
        if refuse_mixed:
            refuse_duplicate_steps(traces, [p.number for p in plans if p.number not in cut])
        verdicts.append(_whole_runs(traces, [plan for plan in plans if plan.number not in cut]))
    if large:
        verdicts.append(large_runs(traces, large, traces.kinds if refuse_mixed else ()))
    if any(MINIMALITY in plan.properties for plan in plans):
        verdicts.append(minimality(traces, plans))
    return union(verdicts)


def _small_runs(traces: TraceSet, plans: Sequence[CheckPlan]) -> DataFrame:
    """Return the verdicts on runs that one task each reads from their files."""

    properties = {plan.run: plan.properties for plan in plans}
    return for_each_run(traces, properties, judge, VERDICTS)


def _whole_runs(traces: TraceSet, plans: Sequence[CheckPlan]) -> DataFrame:
    tasks = [
        task_of(plan, WHOLE, {name: {} for name in plan.without(MINIMALITY).properties})
        for plan in plans
    ]
    task_frame = rows_of(traces.spark, tasks, TASK_COLUMNS)
    events = event_rows(traces, (*ORDERS, *FAULTS, VIEW), EXPLAINED_COLUMNS).join(
        f.broadcast(task_frame.select("number", "topic")), "number"
    )
    return judge_groups(task_rows(task_frame).unionAll(with_topic(events)))


def _large(traces: TraceSet, plans: Sequence[CheckPlan], limits: SizeLimits) -> list[Layout]:
    """Return the runs that do not fit into one task, and where to cut them, from a sample."""
    deliveries = traces.recorded(DELIVER)
    # Spark counts rows from the footers of files: this reads no data.
    total = deliveries.count()
    if total <= limits.whole_deliveries:
        return []
    wanted = max(SAMPLE, SAMPLE_A_CELL * total // limits.cell_deliveries)
    share = min(1.0, wanted / total)
    sample = deliveries.select("run", "time").sample(fraction=share, seed=1).limit(2 * wanted)
    times = _by_run(sample.toArrow())
    large = [
        plan
        for plan in plans
        if plan.run in times and len(times[plan.run]) > limits.whole_deliveries * share
    ]
    crashes = crashed(traces, [plan.number for plan in large]) if large else {}
    return [
        Layout(
            plan=plan.without(MINIMALITY),
            deliveries=round(len(times[plan.run]) / share),
            crashed=crashes.get(plan.number, ()),
            bounds=cell_bounds(
                np.sort(times[plan.run]),
                round(len(times[plan.run]) / share),
                limits.cell_deliveries,
            ),
        )
        for plan in large
    ]


def _by_run(sample: pa.Table) -> dict[str, Ints]:
    """Return the times of each run."""
    runs = sample.column("run").combine_chunks().dictionary_encode()
    code, time = runs.indices.to_numpy(), sample.column("time").to_numpy()
    return {name: time[code == place] for place, name in enumerate(runs.dictionary.to_pylist())}
