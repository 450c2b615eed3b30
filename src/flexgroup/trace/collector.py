"""Collecting a run in memory instead of in files, for small runs and tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa

from flexgroup.core.message import MessageId
from flexgroup.trace.history import History, RunFacts
from flexgroup.trace.reader import history_of
from flexgroup.trace.recorder import Sink
from flexgroup.trace.writer import DestinationSets, Labels, event_tables


class Collector(Sink):
    """Keeps the rows of a run and gives them back as a history."""

    def __init__(self) -> None:
        self._taken: list[list[bytes]] = []
        self._labels: Labels = []
        self._sets: DestinationSets = []

    def take(self, columns: list[bytes], labels: Labels, destination_sets: DestinationSets) -> None:
        self._taken.append(columns)
        self._labels = labels
        self._sets = destination_sets

    def tables(self, run: str = "") -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows in blocks of one kind, as tables with the columns of a trace."""
        for columns in self._taken:
            yield from event_tables(run, columns, self._labels, self._sets)

    def history(
        self,
        run: str,
        processes: int,
        complete: bool,
        faulty: tuple[int, ...] = (),
        names: Mapping[MessageId, str] | None = None,
    ) -> History:
        """Return the run; explanations call messages by these names."""
        tables: dict[str, list[pa.Table]] = {}
        for kind, table in self.tables(run):
            tables.setdefault(kind, []).append(table)

        def events(kind: str) -> pa.Table:
            return pa.concat_tables(tables.get(kind, [pa.table({})]))

        history = history_of(events, RunFacts(run, processes, complete, faulty=faulty))
        return replace(history, names=dict(names or {}))
