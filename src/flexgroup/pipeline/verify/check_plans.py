"""What to check of each run: what was promised, unless the user names the properties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import functions as f

from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.properties.catalogue import known_properties
from flexgroup.trace.history import RunFacts
from flexgroup.trace.run import Run, lost_processes
from flexgroup.trace.schema import MULTICAST


@dataclass(frozen=True, kw_only=True)
class CheckPlan(RunFacts):
    """A run, how it ended, and what to check of it."""

    number: int
    properties: tuple[str, ...]

    def without(self, name: str) -> CheckPlan:
        """Return the plan without this property."""
        return replace(self, properties=tuple(each for each in self.properties if each != name))


def check_plans(runs: Sequence[Run], properties: Sequence[str] | None) -> list[CheckPlan]:
    """Plan what to check of each run: these properties, or what was promised."""
    chosen = None if properties is None else known_properties(properties)
    return [
        CheckPlan(
            number=number,
            run=run.run,
            processes=run.processes,
            complete=run.complete,
            properties=run.promised if chosen is None else chosen,
            faulty=run.faulty,
            nodes=run.nodes,
        )
        for number, run in enumerate(runs)
    ]


def with_lost_events(traces: TraceSet, plans: Sequence[CheckPlan]) -> list[CheckPlan]:
    """Return the plans, with what is known of the last events of processes where these are lost.
    Few runs have any: then no job is run."""
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
