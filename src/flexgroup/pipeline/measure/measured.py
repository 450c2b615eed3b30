"""All runs of a trace set, each measured in the way that fits its size."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from flexgroup.metrics.counting import BY_TYPE, READ_COLUMNS, count
from flexgroup.metrics.period import Span, group_size, kinds_of_span, measured_period
from flexgroup.metrics.sums import PACKETS, SUMS
from flexgroup.metrics.tables import POINT, measures, points
from flexgroup.pipeline.measure.spark_sums import packets_by_type, sums_of_runs
from flexgroup.pipeline.reading.local_files import MOST_EVENTS
from flexgroup.pipeline.reading.small_run import SmallRun
from flexgroup.pipeline.reading.small_runs import for_each_run
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.result_tables import in_order
from flexgroup.trace import schema
from flexgroup.trace.cost_models import parse_cost_model
from flexgroup.trace.history import History

COUNTED = SUMS.append(pa.field(BY_TYPE, pa.list_(pa.struct(list(PACKETS)[1:]))))
"""The sums of each run, and its rows of PACKETS."""


@dataclass(frozen=True)
class Measured:
    """The tables of docs/measures.md. Each is computed when it is first asked for, and has a few
    rows for each run, however long, so that it may be held here."""

    traces: TraceSet
    most_events: int = MOST_EVENTS
    """Runs of so many events are read by one task each."""

    @cached_property
    def measures(self) -> pa.Table:
        """A row for each run, by name."""
        rows = self._counted.select(SUMS.names).to_pylist()
        if self._others:
            rows += sums_of_runs(self._others).toArrow().to_pylist()
        return measures(self.traces.described, {row["run"]: row for row in rows})

    @cached_property
    def packets(self) -> pa.Table:
        """A row for each run, sender and type of packets."""
        rows = [
            {"run": row["run"], **packets}
            for row in self._counted.select(["run", BY_TYPE]).to_pylist()
            for packets in row[BY_TYPE]
        ]
        if self._others:
            rows += packets_by_type(self._others).toArrow().to_pylist()
        return in_order(pa.Table.from_pylist(rows, PACKETS), "run", "sender", "packet")

    @cached_property
    def points(self) -> pa.Table:
        """A row for each set of runs that differ only in their seed."""
        return in_order(points(self.measures), *POINT)

    @cached_property
    def _small(self) -> Mapping[str, int]:
        """The runs that tasks read, and how many events have to be read for each."""
        return self.traces.runs_to_read(self.most_events)

    @cached_property
    def _counted(self) -> pa.Table:
        """What is COUNTED in the small runs, by the tasks that read them."""
        if not self._small:
            return COUNTED.empty_table()
        requests = dict.fromkeys(self._small)
        return for_each_run(self.traces, requests, _count, COUNTED).toArrow()

    @cached_property
    def _others(self) -> TraceSet | None:
        """The other runs, if there are any."""
        others = tuple(run for run in self.traces.described if run.run not in self._small)
        return replace(self.traces, described=others) if others else None


def _count(files: SmallRun) -> pa.Table:
    """Return the row of what is COUNTED in a run."""
    run, history = files.run, files.history(packets=False)
    counted = count(
        history,
        lambda kind: files.columns(kind, READ_COLUMNS[kind]),
        measured_period(run, _span(history, kinds_of_span(run))),
        group_size(run),
        parse_cost_model(run.cost_model),
        run.replicas,
    )
    files.refuse_contradictions()
    return pa.Table.from_pylist([counted], COUNTED)


def _span(history: History, kinds: Collection[str]) -> Span | None:
    times = {schema.MULTICAST: history.multicasts.time, schema.DELIVER: history.deliveries.time}
    found = [times[kind] for kind in kinds if len(times[kind])]
    if not found:
        return None
    return min(int(time.min()) for time in found), max(int(time.max()) for time in found)
