"""The files of a trace set on this machine, looked at before Spark starts, which takes longer.

What cannot be relied upon is refused here. How many events the files hold, which their footers
tell, decides how the work is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.spark.session import SMALL_JOB, is_on_this_machine
from flexgroup.trace.reader import read_runs
from flexgroup.trace.run import Run
from flexgroup.trace.validate.footers import checked_kinds, event_files

MOST_EVENTS = 2_000_000
"""Runs of so many events are read by one task each, of all kinds together."""

A_FILE = 5_000
"""Opening a file takes as long as reading so many events."""


@dataclass(frozen=True)
class LocalFiles:
    """A directory, its runs by name, and the kinds of events that were recorded."""

    directory: Path
    described: tuple[Run, ...]
    kinds: frozenset[str]

    @cached_property
    def rows(self) -> Mapping[str, Mapping[str, int]]:
        """How many events each file holds, by kind, and by its name without ending."""
        found = {}
        for kind, paths in event_files(self.directory).items():
            with ThreadPoolExecutor() as threads:
                names = (path.stem for path in paths)
                found[kind] = dict(zip(names, threads.map(_rows, paths), strict=True))
        return found

    @property
    def events(self) -> int:
        """How many events there are."""
        return sum(sum(files.values()) for files in self.rows.values())

    @cached_property
    def shared(self) -> frozenset[str]:
        """The kinds of events that are in files of several runs, or of parts of runs."""
        names = {run.run for run in self.described}
        return frozenset(kind for kind, files in self.rows.items() if not files.keys() <= names)

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
    kinds = checked_kinds(directory, [run.run for run in described])
    return LocalFiles(directory, tuple(described), kinds)


def refuse_if_missing(path: str, master: str | None) -> None:
    """Raise a UsageError for a path that Spark would look for on this machine in vain."""
    if is_on_this_machine(master) and not urlsplit(path).scheme and not Path(path).exists():
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


def _rows(path: Path) -> int:
    return int(pq.read_metadata(path).num_rows)
