"""Measures of runs that fit into memory, counted with numpy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from flexgroup.metrics.counting import BY_TYPE, READ_COLUMNS
from flexgroup.metrics.in_memory import sums_of
from flexgroup.metrics.sums import PACKETS, SUMS
from flexgroup.metrics.tables import POINT, measures, points
from flexgroup.pipeline.in_memory.small_run import SmallRun, each_run
from flexgroup.pipeline.reading.local_files import LocalFiles
from flexgroup.pipeline.result_tables import in_order
from flexgroup.trace.run import Run

COUNTED = SUMS.append(pa.field(BY_TYPE, pa.list_(pa.struct(list(PACKETS)[1:]))))
"""The sums of each run, and its rows of PACKETS."""


@dataclass(frozen=True)
class MeasuredHere:
    """The tables of docs/measures.md, of runs that are counted one after the other."""

    files: LocalFiles

    @cached_property
    def measures(self) -> pa.Table:
        """A row for each run, by name."""
        return measures_of(self.files.described, self._counted.to_pylist())

    @cached_property
    def packets(self) -> pa.Table:
        """A row for each run, sender and type of packets."""
        return packets_of(packet_rows(self._counted))

    @cached_property
    def points(self) -> pa.Table:
        """A row for each set of runs that differ only in their seed."""
        return points_of(self.measures)

    @cached_property
    def _counted(self) -> pa.Table:
        requests = dict.fromkeys(run.run for run in self.files.described)
        return each_run(self.files, requests, count_run, COUNTED)


def measures_of(described: Iterable[Run], sums: Iterable[dict[str, Any]]) -> pa.Table:
    """Return the table of measures, given the sums of each run."""
    return measures(described, {row["run"]: row for row in sums})


def packet_rows(counted: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of PACKETS among what is COUNTED."""
    return [
        {"run": row["run"], **packets}
        for row in counted.select(["run", BY_TYPE]).to_pylist()
        for packets in row[BY_TYPE]
    ]


def packets_of(rows: Iterable[dict[str, Any]]) -> pa.Table:
    """Return the table of packets."""
    return in_order(pa.Table.from_pylist(list(rows), PACKETS), "run", "sender", "packet")


def points_of(measured: pa.Table) -> pa.Table:
    """Return the table of points, given that of measures."""
    return in_order(points(measured), *POINT, "run")


def count_run(files: SmallRun) -> pa.Table:
    """Return the row of what is COUNTED in a run."""
    counted = sums_of(
        files.run,
        files.history(packets=False),
        lambda kind: files.columns(kind, READ_COLUMNS[kind]),
    )
    files.refuse_contradictions()
    return pa.Table.from_pylist([counted], COUNTED)
