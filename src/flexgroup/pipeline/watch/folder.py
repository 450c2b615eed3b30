"""Watching a trace set in a folder of this machine, without Spark: each batch is what is new there.

All that is known is in memory, and gone when watching ends: begun again, it reads everything again.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from flexgroup.core.errors import UsageError
from flexgroup.core.message import NO_MESSAGE
from flexgroup.pipeline.in_memory.event_rows import CODES
from flexgroup.pipeline.watch.follower import HOLD
from flexgroup.pipeline.watch.reassembly import ARRIVING, FOLLOWED
from flexgroup.pipeline.watch.watched_run import BatchReport, Description, WatchedRun
from flexgroup.trace import schema
from flexgroup.trace.history import Ints, is_only_told, parse_view
from flexgroup.trace.reader import ints, messages, parquet_files, read_table
from flexgroup.trace.rules import LARGEST
from flexgroup.trace.run_files import AS_PART
from flexgroup.trace.writer import STARTED

Tell = Callable[[str, BatchReport], None]

PART = re.compile(AS_PART)

NEEDED = ("run", "process", "step", "time", "origin", "seq", "destinations", "detail")


class FolderWatch:
    """Watches the runs of a trace set; what is found goes to `tell`."""

    def __init__(
        self,
        directory: Path,
        tell: Tell,
        properties: Sequence[str] | None = None,
        hold: int = HOLD,
    ) -> None:
        if not directory.is_dir():
            raise UsageError(
                f"'{directory}' is not a directory; give the directory of a trace set, or an empty"
                " one in which runs are going to appear"
            )
        self._directory = directory
        self._tell = tell
        self._properties = properties
        self._hold = hold
        self._batch = 0
        self._read: set[Path] = set()
        self._open: dict[str, WatchedRun] = {}
        self._over: set[str] = set()
        self.found_any = False

    @property
    def unfinished(self) -> int | None:
        """How many runs were seen and are not over; None if none was seen."""
        return len(self._open) if self._open or self._over else None

    @property
    def ending(self) -> bool:
        """Whether a run is over with the next batch, whether anything comes or not."""
        return any(run.ended_in is not None for run in self._open.values())

    def look(self) -> None:
        """Go through what is new in the folder."""
        # Runs before events: what was written before the row of a run is listed after it.
        ended = self._described("runs")
        started = self._described(STARTED)
        events = self._events()
        ending = {name for name, run in self._open.items() if run.ended_in is not None}
        for name in sorted(ended.keys() | started.keys() | events.keys() | ending):
            if name in self._over:
                continue
            run = self._open.get(name)
            if run is None:
                run = self._open[name] = WatchedRun(name, self._properties, self._hold)
            tables = events.get(name)
            rows = pa.concat_tables(tables) if tables else ARRIVING.empty_table()
            notes = run.advance(self._batch, rows, started.get(name), ended.get(name))
            self.found_any |= bool(notes.violations)
            if run.over:
                del self._open[name]
                self._over.add(name)
            if notes != BatchReport():
                self._tell(name, notes)
        self._batch += 1

    def _new(self, folder: Path) -> Iterator[Path]:
        for path in parquet_files(folder):
            if path not in self._read:
                self._read.add(path)
                yield path

    def _described(self, folder: str) -> dict[str, Description]:
        found: dict[str, Description] = {}
        for path in self._new(self._directory / folder):
            table = read_table(path, schema.RUN_COLUMNS, required=schema.REQUIRED_OF_RUNS)
            found |= {row["run"]: row for row in table.to_pylist()}
        return found

    def _events(self) -> dict[str, list[pa.Table]]:
        found: dict[str, list[pa.Table]] = defaultdict(list)
        for kind in FOLLOWED:
            for path in self._new(self._directory / "events" / f"event={kind}"):
                required = schema.required_columns(kind)
                table = read_table(path, schema.EVENT_COLUMNS, NEEDED, required)
                for run in table.column("run").unique().to_pylist():
                    of_run = table.filter(pa.compute.field("run") == run)
                    found[run].append(arriving(kind, of_run, run, path.stem))
        return found


def arriving(kind: str, table: pa.Table, run: str, file: str) -> pa.Table:
    """Return the events of one kind and run as followers take them; the name of their file, without
    ending, tells which part of the run they are."""
    part = PART.fullmatch(file, len(run)) if file.startswith(run) else None
    count = table.num_rows
    message, destinations = _packed(table), _lists(table)
    if kind == schema.VIEW:
        details = table.column("detail").to_pylist()
        views = [parse_view(detail) for detail in details]
        told = [is_only_told(detail) for detail in details]
        numbers = [
            NO_MESSAGE if only else view.number for view, only in zip(views, told, strict=True)
        ]
        message = np.array(numbers, dtype=np.int64)
        destinations = pa.array([view.members for view in views], pa.list_(pa.int32()))
    columns = {
        "event": pa.array([CODES[kind]] * count, pa.int8()),
        **{name: table.column(name) for name in ("process", "step", "time")},
        "message": pa.array(message),
        "destinations": destinations,
        "part": pa.array([None if part is None else int(part[2])] * count, pa.int32()),
        "writer": pa.array([None if part is None else part[1]] * count, pa.string()),
    }
    return pa.table(columns).cast(ARRIVING)


def _packed(table: pa.Table) -> Ints:
    """Return the messages; numbers that none can have would pass for another, which is refused."""
    if not {"origin", "seq"} <= set(table.column_names):
        return np.full(table.num_rows, NO_MESSAGE, dtype=np.int64)
    odd = np.zeros(table.num_rows, dtype=np.bool_)
    for name in ("origin", "seq"):
        value = ints(table, name, -1)
        odd |= (value < 0) | (value > LARGEST[name])
    return np.where(odd, NO_MESSAGE, messages(table))


def _lists(table: pa.Table) -> pa.Array:
    if "destinations" in table.column_names:
        return table.column("destinations")
    return pa.nulls(table.num_rows, pa.list_(pa.int32()))
