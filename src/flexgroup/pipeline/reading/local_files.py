"""The files of a trace set on this machine, looked at before Spark starts, which takes longer.

Only footers and the first rows are read, a millisecond or so a file: whether the file is whole,
whether its columns are those of the schema, whether two files tell of the same events, and how many
events there are. What cannot be relied upon is refused. Damage further inside is left to the
validator, and to whoever reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.spark.session import SMALL_JOB, is_on_this_machine, is_set_elsewhere
from flexgroup.trace import schema
from flexgroup.trace.reader import parquet_files, read_runs, refuse_bad_columns, unreadable
from flexgroup.trace.run import Run
from flexgroup.trace.run_files import refuse_file_problems

MOST_EVENTS = 2_000_000
"""Runs of so many events are read by one task each, of all kinds together."""

A_FILE = 5_000
"""Opening a file takes as long as reading so many events."""

LOOKED_AT = 256
"""Rows at the beginning of a file. Two recordings under one name begin alike: with a multicast at
step 0 of some process."""


@dataclass(frozen=True)
class LocalFiles:
    """A directory, its runs by name, and how many events each file holds."""

    directory: Path
    described: tuple[Run, ...]
    rows: Mapping[str, Mapping[str, int]]
    """How many events each file holds, by kind, and by its name without ending."""

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of events that were recorded."""
        return frozenset(self.rows)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the runs. A file of such a name holds that run, and no other."""
        return frozenset(run.run for run in self.described)

    @cached_property
    def shared(self) -> frozenset[str]:
        """The kinds of events that are in files of several runs, or of parts of runs."""
        return frozenset(
            kind for kind, files in self.rows.items() if not files.keys() <= self.names
        )

    def kinds_of(self, run: str) -> list[str]:
        """Return the kinds of events that a run may have; a file of its name holds no other."""
        return [kind for kind, files in self.rows.items() if run in files or kind in self.shared]

    def runs_to_read(self, most: int = MOST_EVENTS) -> dict[str, int]:
        """Return the runs for which at most so many events have to be read, and how many.

        A run may be in any file of a kind where files are shared. The result is empty if that comes
        to reading more than so many events again and again.
        """
        needed = {run.run: 0 for run in self.described}
        again = 0
        for kind, files in self.rows.items():
            everything = sum(files.values()) + A_FILE * len(files) if kind in self.shared else 0
            for name in needed:
                needed[name] += files.get(name, everything)
                again += 0 if name in files else everything
        return {name: count for name, count in needed.items() if count <= most >= again}


def look_here(path: str) -> LocalFiles | None:
    """Return the trace set of this path, if it is on this machine."""
    directory = _directory_here(path)
    if directory is None:
        return None
    described = read_runs(directory)
    names = frozenset(run.run for run in described)
    rows: dict[str, dict[str, int]] = {}
    seen: set[str] = set()
    for folder in sorted((directory / "events").glob("event=*")):
        kind = folder.name.removeprefix("event=")
        paths = parquet_files(folder)
        if paths and kind not in schema.KINDS:
            raise UsageError(unknown_kind(str(folder), kind))
        if paths:
            with ThreadPoolExecutor() as threads:
                files = list(threads.map(_beginning, [kind] * len(paths), paths))
            _refuse_mixed(files, names)
            rows[kind] = {file.path.stem: file.rows for file in files}
            seen |= {file.run for file in files if file.run is not None}
    refuse_file_problems(described, rows, seen)
    return LocalFiles(directory, tuple(described), rows)


def unknown_kind(folder: str, kind: str) -> str:
    return (
        f"'{folder}': there are no events of kind '{kind}'; the kinds are: "
        f"{', '.join(schema.KINDS)}; rename the directory, or remove it"
    )


def refuse_if_missing(path: str, master: str | None) -> None:
    """Raise a UsageError for a path that Spark would look for on this machine in vain."""
    here = is_on_this_machine(master) and not (master is None and is_set_elsewhere())
    if here and not urlsplit(path).scheme and not Path(path).exists():
        raise UsageError(f"'{path}' does not exist; give the directory of a trace set")


def settings_for(files: LocalFiles | None, master: str | None) -> Mapping[str, str]:
    """Return settings for a small job, if Spark is on two cores of this machine and tasks can read
    all the runs."""
    is_small = files is not None and len(files.runs_to_read()) == len(files.described)
    return SMALL_JOB if master is None and is_small else {}


def _directory_here(path: str) -> Path | None:
    if Path(path).exists():
        return Path(path)
    parts = urlsplit(path)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


@dataclass(frozen=True)
class _Beginning:
    """How many rows a file has, the run of the first, and process and step of those of the first
    rows that are of that run."""

    path: Path
    rows: int
    run: str | None
    events: frozenset[tuple[int, int]]


def _beginning(kind: str, path: Path) -> _Beginning:
    try:
        with pq.ParquetFile(path, buffer_size=1 << 16, page_checksum_verification=True) as file:
            required = schema.required_columns(kind)
            refuse_bad_columns(path, file.schema_arrow, schema.EVENT_COLUMNS, required)
            columns = ["run", "process", "step"]
            batch = next(file.iter_batches(LOOKED_AT, columns=columns), None)
            first_rows = [] if batch is None else batch.to_pylist()
            rows = file.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error) from None
    run = first_rows[0]["run"] if first_rows else None
    events = ((row["process"], row["step"]) for row in first_rows if row["run"] == run)
    return _Beginning(path, rows, run, frozenset(events))


def _refuse_mixed(beginnings: Iterable[_Beginning], runs: frozenset[str]) -> None:
    """Refuse files of one kind that tell of the same run, unless they are parts of it."""
    by_run: dict[str, list[_Beginning]] = {}
    for beginning in beginnings:
        if beginning.run is None:
            continue
        by_run.setdefault(beginning.run, []).append(beginning)
        name = beginning.path.stem
        if name in runs and beginning.run != name:
            raise UsageError(
                f"'{beginning.path}' begins with events of run '{beginning.run}', and run '{name}' "
                "has its name; a file with the name of a run holds that run: rename the file"
            )
    for run, files in by_run.items():
        seen: dict[tuple[int, int], Path] = {}
        for file in files:
            own = file.path.with_name(f"{run}.parquet")
            if len(files) > 1 and any(other.path == own for other in files if other is not file):
                raise UsageError(
                    f"'{file.path}' holds events of run '{run}', and so does '{own}'; two runs "
                    "with the same name are mixed: keep one of them"
                )
            for event in sorted(file.events):
                if event in seen:
                    raise UsageError(
                        f"'{seen[event]}' and '{file.path}' both hold step {event[1]} of process "
                        f"{event[0]} of run '{run}'; two runs with the same name are mixed: keep "
                        "one of them"
                    )
                seen[event] = file.path
