"""Runs in which the last events of some process are lost: from which message on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.verify.check_plans import CheckPlan
from flexgroup.trace.run import lost_processes
from flexgroup.trace.schema import MULTICAST


def with_lost_events(traces: TraceSet, plans: Sequence[CheckPlan]) -> list[CheckPlan]:
    """Return the plans, with what is known of lost events. Few runs have any: then no job is
    run."""
    lost = {
        plan.number: lost_processes(traces.described[plan.number].lost)
        for plan in plans
        if traces.described[plan.number].lost
    }
    if not lost:
        return list(plans)
    numbers = traces.events(MULTICAST, "origin", "seq").where(f.col("number").isin([*lost]))
    last = numbers.groupBy("number", "origin").agg(f.max("seq").alias("last")).collect()
    first = {(row.number, row.origin): row.last + 1 for row in last}
    return [
        replace(
            plan,
            lost=tuple(
                (process, first.get((plan.number, process), 0))
                for process in lost.get(plan.number, ())
            ),
        )
        for plan in plans
    ]


def first_lost(traces: TraceSet, plans: Sequence[CheckPlan]) -> DataFrame:
    """Return `number`, `origin`, and as `first_lost` the number of the first message from there
    that may be lost."""
    rows = [(plan.number, *pair) for plan in plans for pair in plan.lost]
    return traces.spark.createDataFrame(rows, "number int, origin int, first_lost bigint")
