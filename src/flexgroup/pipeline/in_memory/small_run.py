"""A run that one task can hold, read from its files and compared with what a valid trace is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from flexgroup.pipeline.reading.local_files import LocalFiles
from flexgroup.trace import reader
from flexgroup.trace.history import History
from flexgroup.trace.run import Run
from flexgroup.trace.run_events import RunEvents, kept_columns


@dataclass(frozen=True)
class SmallRun:
    """A run and its files, as the task that reads them sees them."""

    directory: Path
    run: Run
    kinds: Sequence[str]
    """The kinds of events that it may have; nothing else is looked for."""
    request: Any
    """What to do with this run, as the caller of `for_each_run` says for each."""

    def history(self, packets: bool = True) -> History:
        """Load the run into memory, with its packets or without."""
        return reader.load_history(
            self.directory, self.run, packets=packets, read_events_of=self.columns
        )

    def events(self, kind: str) -> pa.Table:
        """Read the events of one kind with all their columns, by (process, step)."""
        return reader.read_events(self.directory, self.run.run, kind)

    def columns(self, kind: str, names: Sequence[str] = ()) -> pa.Table:
        """Read some columns of the events of one kind."""
        rows = pa.table({})
        if kind in self.kinds:
            wanted = [*names, *(name for name in kept_columns(kind) if name not in names)]
            rows = reader.read_columns(self.directory, self.run.run, kind, wanted)
        self._read.take(kind, rows)
        return rows

    def refuse_contradictions(self) -> None:
        """Raise a UsageError if the events whose columns were read contradict each other, or what
        is told of the run."""
        self._read.refuse_contradictions()

    @cached_property
    def _read(self) -> RunEvents:
        return RunEvents(self.run)


def each_run(
    files: LocalFiles,
    requests: Mapping[str, Any],
    do: Callable[[SmallRun], pa.Table],
    columns: pa.Schema,
) -> pa.Table:
    """Return the tables that `do` makes of these runs, one after the other; `requests` names the
    runs, and says for each what `do` has to know."""
    described = {run.run: run for run in files.described}
    tables = [
        do(SmallRun(files.directory, described[name], files.kinds_of(name), request))
        for name, request in requests.items()
    ]
    return pa.concat_tables([columns.empty_table(), *tables])
