"""All runs of a trace set, each measured in the way that fits its size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from flexgroup.pipeline.measure.from_files import BY_TYPE, COUNTED, from_files
from flexgroup.pipeline.measure.metrics import POINT, measures
from flexgroup.pipeline.measure.points import points
from flexgroup.pipeline.measure.sums import PACKETS, SUMS
from flexgroup.pipeline.tables import in_order
from flexgroup.pipeline.trace_files import MOST_EVENTS

if TYPE_CHECKING:
    from flexgroup.pipeline.read import TraceSet


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
        rows = self._read.select(SUMS.names).to_pylist()
        if self._others:
            from flexgroup.pipeline.measure.plan import sums_of_runs

            rows += sums_of_runs(self._others).toArrow().to_pylist()
        return measures(self.traces.described, {row["run"]: row for row in rows})

    @cached_property
    def packets(self) -> pa.Table:
        """A row for each run, sender and type of packets."""
        rows = [
            {"run": row["run"], **packets}
            for row in self._read.select(["run", BY_TYPE]).to_pylist()
            for packets in row[BY_TYPE]
        ]
        if self._others:
            from flexgroup.pipeline.measure.traffic import by_packet

            rows += by_packet(self._others).toArrow().to_pylist()
        return in_order(pa.Table.from_pylist(rows, PACKETS), "run", "sender", "packet")

    @cached_property
    def points(self) -> pa.Table:
        """A row for each set of runs that differ only in their seed."""
        return in_order(points(self.measures), *POINT)

    @cached_property
    def _events(self) -> Mapping[str, int]:
        """The runs that tasks read, and how many events have to be read for each."""
        files = self.traces.files
        return files.runs_to_read(self.most_events) if files else {}

    @cached_property
    def _read(self) -> pa.Table:
        """What is counted in these runs."""
        if self.traces.files is None or not self._events:
            return COUNTED.empty_table()
        return from_files(self.traces, self.traces.files, self._events).toArrow()

    @cached_property
    def _others(self) -> TraceSet | None:
        """The other runs, if there are any."""
        others = tuple(run for run in self.traces.described if run.run not in self._events)
        return replace(self.traces, described=others) if others else None
