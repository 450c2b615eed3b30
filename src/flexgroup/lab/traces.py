"""The recorded runs that the lab was given to look at: read once, beside the pages, and kept as
long as their files stay as they are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Generic, TypeVar

from flexgroup.core.errors import UsageError
from flexgroup.lab.judging import Judging, judge
from flexgroup.lab.window import RunName
from flexgroup.trace.differences import Difference, differences
from flexgroup.trace.reader import parquet_files, read_runs
from flexgroup.trace.run import Run
from flexgroup.trace.timeline import Timeline, files_of, open_timeline

MOST_KEPT = 4
"""How many runs, and how many comparisons, are kept in memory."""

PATIENCE = 0.5
"""The seconds that a page waits for what is being read, before it says how far that is."""

Stamp = tuple[tuple[str, int, int], ...]
"""What files are known by: path, time of the last change, and size."""


Result = TypeVar("Result")
Key = TypeVar("Key")


@dataclass
class Reading(Generic[Result]):
    """Something that takes a while and is done beside the pages."""

    words: str
    share: float = 0.0
    result: Result | None = None
    problem: str = ""
    _done: threading.Event = field(default_factory=threading.Event)

    def begin(self, work: Callable[[], Result]) -> None:
        threading.Thread(target=self._do, args=(work,), daemon=True).start()

    def _do(self, work: Callable[[], Result]) -> None:
        try:
            self.result = work()
        except UsageError as error:
            self.problem = str(error)
        except MemoryError:
            self.problem = "there is not enough memory here for this run"
        finally:
            self._done.set()

    def wait(self, seconds: float | None) -> bool:
        return self._done.wait(seconds)

    @property
    def over(self) -> bool:
        return self._done.is_set()

    def told(self) -> str:
        """Say how far it is, or what is wrong."""
        far = f": {self.share:.0%}" if self.share else ""
        return self.problem or ("It is done." if self.over else f"{self.words}{far}")

    def get(self) -> Result:
        """Return what came of it; raise a UsageError if that is a problem."""
        if self.result is None:
            raise UsageError(self.problem or "this has not been read yet: load the page again")
        return self.result


class TraceSets:
    """Trace sets by name, their runs, and what is in memory of them."""

    def __init__(self, directories: Sequence[Path] = ()) -> None:
        self.directories: dict[str, Path] = {}
        for directory in directories:
            name = directory.resolve().name
            names = chain([name], (f"{name}-{number}" for number in count(2)))
            self.directories[next(n for n in names if n not in self.directories)] = directory
        self._lock = threading.Lock()
        self._timelines: dict[tuple[RunName, Stamp], Reading[Timeline]] = {}
        self._compared: dict[tuple[RunName, Stamp, RunName, Stamp], Reading[list[Difference]]] = {}
        self._judged: dict[tuple[RunName, Stamp], Reading[Judging]] = {}
        self._runs: dict[str, tuple[Stamp, dict[str, Run]]] = {}

    def runs(self, traces: str) -> dict[str, Run]:
        """Return the runs of a trace set by name."""
        directory = self.directory(traces)
        stamp = _stamp(parquet_files(directory / "runs"))
        known = self._runs.get(traces)
        if known is None or known[0] != stamp:
            known = self._runs[traces] = stamp, {run.run: run for run in read_runs(directory)}
        return known[1]

    def directory(self, traces: str) -> Path:
        directory = self.directories.get(traces)
        if directory is None:
            known = ", ".join(self.directories) or "none: give it one, as in flexgroup lab traces"
            raise UsageError(f"this lab has no trace set '{traces}'; it has: {known}")
        return directory

    def run(self, name: RunName) -> Run:
        run = self.runs(name.traces).get(name.run)
        if run is None:
            raise UsageError(f"'{self.directory(name.traces)}' holds no run '{name.run}'")
        return run

    def timeline(self, name: RunName) -> Reading[Timeline]:
        """Return the reading of a run, which is begun if it has not been."""
        run, directory, runs = self.run(name), self.directory(name.traces), self.runs(name.traces)
        key = name, self._stamp_of(name)
        with self._lock:
            reading = self._timelines.get(key)
            if reading is None:
                reading = Reading(f"Reading run {name.run}")
                _make_room(self._timelines)
                self._timelines[key] = begun = reading

                def report(share: float) -> None:
                    begun.share = share

                begun.begin(lambda: open_timeline(directory, run, runs, report))
            else:
                self._timelines[key] = self._timelines.pop(key)  # looked at last
        return reading

    def compared(self, ours: RunName, theirs: RunName) -> Reading[list[Difference]]:
        """Return the differences of two runs, which are being looked for."""
        key = ours, self._stamp_of(ours), theirs, self._stamp_of(theirs)
        both = [(self.directory(name.traces), name.run) for name in (ours, theirs)]
        with self._lock:
            reading = self._compared.get(key)
            if reading is None:
                reading = Reading(f"Comparing {ours.run} and {theirs.run}")
                _make_room(self._compared)
                self._compared[key] = reading
                reading.begin(lambda: differences(both[0], both[1]))
        return reading

    def judged(self, name: RunName, begin: bool) -> Reading[Judging] | None:
        """Return the reading of what checks say of a run; None, if it is not to begin yet."""
        directory, key = self.directory(name.traces), (name, self._stamp_of(name))
        with self._lock:
            reading = self._judged.get(key)
            if reading is None and begin:
                reading = Reading("Checking what was promised")
                _make_room(self._judged)
                self._judged[key] = reading
                reading.begin(lambda: judge(directory, name.run))
        return reading

    def _stamp_of(self, name: RunName) -> Stamp:
        directory, runs = self.directory(name.traces), self.runs(name.traces)
        return _stamp([path for _, path in files_of(directory, name.run, runs)])


def _make_room(kept: dict[Key, Reading[Result]]) -> None:
    """Forget what was not looked at for longest."""
    over = [key for key, reading in kept.items() if reading.over]
    for key in over[: max(0, len(kept) - MOST_KEPT + 1)]:
        del kept[key]


def _stamp(paths: Sequence[Path]) -> Stamp:
    stats = [(path, path.stat()) for path in paths]
    return tuple((str(path), stat.st_mtime_ns, stat.st_size) for path, stat in stats)
