"""All runs of a trace set, each measured in the way that fits its size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame

from flexgroup.metrics.sums import SUMS
from flexgroup.pipeline.in_memory.measures import (
    COUNTED,
    count_run,
    measures_of,
    packet_rows,
    packets_of,
    points_of,
)
from flexgroup.pipeline.measure.spark_sums import packets_by_type, sums_of_runs
from flexgroup.pipeline.reading.local_files import MOST_EVENTS
from flexgroup.pipeline.reading.small_runs import for_each_run
from flexgroup.pipeline.reading.trace_set import TraceSet


@dataclass(frozen=True)
class Measured:
    """The tables of docs/measures.md. Each is computed when it is first asked for, and has a few
    rows for each run, however long, so that it may be held here."""

    traces: TraceSet
    most_events: int = MOST_EVENTS
    """Runs of so many events are read by one task each."""

    def frame(self, name: str) -> DataFrame:
        """Return one of the tables, `measures`, `points` or `packets`, as a DataFrame."""
        return self.traces.spark.createDataFrame(getattr(self, name))

    @cached_property
    def measures(self) -> pa.Table:
        """A row for each run, by name."""
        rows = self._counted.select(SUMS.names).to_pylist()
        if self._others:
            rows += sums_of_runs(self._others).toArrow().to_pylist()
        return measures_of(self.traces.described, rows)

    @cached_property
    def packets(self) -> pa.Table:
        """A row for each run, sender and type of packets."""
        rows = packet_rows(self._counted)
        if self._others:
            rows += packets_by_type(self._others).toArrow().to_pylist()
        return packets_of(rows)

    @cached_property
    def points(self) -> pa.Table:
        """A row for each set of runs that differ only in their seed."""
        return points_of(self.measures)

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
        return for_each_run(self.traces, requests, count_run, COUNTED).toArrow()

    @cached_property
    def _others(self) -> TraceSet | None:
        """The other runs, if there are any."""
        others = tuple(run for run in self.traces.described if run.run not in self._small)
        return replace(self.traces, described=others) if others else None
