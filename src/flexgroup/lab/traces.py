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

    def report(self, share: float) -> None:
        self.share = share

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


class Kept(Generic[Key, Result]):
    """Readings by what they are of: those that go on, and those that were looked at last."""

    def __init__(self, turn: threading.Lock) -> None:
        """`turn` lets one go on at a time: each takes memory, or a core."""
        self._turn = turn
        self._lock = threading.Lock()
        self._readings: dict[Key, Reading[Result]] = {}

    def known(self, key: Key) -> Reading[Result] | None:
        return self._readings.get(key)

    def get(
        self, key: Key, words: str, work: Callable[[Reading[Result]], Result]
    ) -> Reading[Result]:
        """Return the reading of this, which is begun if it has not been."""
        with self._lock:
            reading = self._readings.pop(key, None)
            if reading is None:
                self._make_room()
                reading = begun = Reading[Result](words)

                def in_turn() -> Result:
                    with self._turn:
                        return work(begun)

                begun.begin(in_turn)
            self._readings[key] = reading
        return reading

    def _make_room(self) -> None:
        """Forget what was not looked at for longest."""
        over = [key for key, reading in self._readings.items() if reading.over]
        for key in over[: max(0, len(self._readings) - MOST_KEPT + 1)]:
            del self._readings[key]


Of = tuple[RunName, Stamp]
"""A run with the state of its files."""


class TraceSets:
    """Trace sets by name, their runs, and what is in memory of them."""

    def __init__(self, directories: Sequence[Path] = ()) -> None:
        self.directories: dict[str, Path] = {}
        for directory in directories:
            name = directory.resolve().name
            names = chain([name], (f"{name}-{number}" for number in count(2)))
            self.directories[next(n for n in names if n not in self.directories)] = directory
        reading = threading.Lock()
        self._timelines: Kept[Of, Timeline] = Kept(reading)
        self._compared: Kept[tuple[Of, Of], list[Difference]] = Kept(reading)
        self._judged: Kept[Of, Judging] = Kept(threading.Lock())
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

        def read(reading: Reading[Timeline]) -> Timeline:
            return open_timeline(directory, run, runs, reading.report)

        return self._timelines.get(self._now(name), f"Reading run {name.run}", read)

    def compared(self, ours: RunName, theirs: RunName) -> Reading[list[Difference]]:
        """Return the differences of two runs, which are being looked for."""
        one, other = ((self.directory(name.traces), name.run) for name in (ours, theirs))
        return self._compared.get(
            (self._now(ours), self._now(theirs)),
            f"Comparing {ours.run} and {theirs.run}",
            lambda _: differences(one, other),
        )

    def judged(self, name: RunName, begin: bool) -> Reading[Judging] | None:
        """Return the reading of what checks say of a run; None, if it is not to begin yet."""
        directory, key = self.directory(name.traces), self._now(name)
        if not begin:
            return self._judged.known(key)
        words = "Checking what was promised"
        return self._judged.get(key, words, lambda _: judge(directory, name.run))

    def _now(self, name: RunName) -> Of:
        directory, runs = self.directory(name.traces), self.runs(name.traces)
        return name, _stamp([path for _, path in files_of(directory, name.run, runs)])


def _stamp(paths: Sequence[Path]) -> Stamp:
    stats = [(path, path.stat()) for path in paths]
    return tuple((str(path), stat.st_mtime_ns, stat.st_size) for path, stat in stats)
