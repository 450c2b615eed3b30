"""The directory of an experiment: what lies where, and whether it may be written to."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from flexgroup.core.errors import UsageError
from flexgroup.experiments.experiment import Experiment
from flexgroup.trace.run import SOFTWARE

LOCK = "_lock"

ANOTHER = "choose another --out, or add --force to replace what is there"


class Directory:
    """Paths below the directory that the user named."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.description = path / "experiment.json"
        self.traces = path / "traces"
        self.tables = path / "tables"
        self.page = path / "figures.md"
        self.elsewhere = path / "elsewhere.csv"

    def measured_elsewhere(self) -> list[list[str]]:
        """Return the rows of the table that something else wrote here, the head first."""
        if not self.elsewhere.exists():
            return []
        with self.elsewhere.open(encoding="utf-8", newline="") as file:
            return [row for row in csv.reader(file) if row]

    def ours(self) -> list[Path]:
        """Everything that an experiment writes."""
        drawn = self.path / "figures", self.path / "report.html"
        return [self.traces, self.tables, self.page, *drawn, self.description]


@contextmanager
def reserved_directory(
    experiment: Experiment, scale: str, path: Path, force: bool
) -> Iterator[Directory]:
    """Make the directory ready for this experiment, and keep others away meanwhile.

    A directory with the same experiment is taken up where it was left; anything else in the way
    is replaced only if forced.
    """
    directory = Directory(path)
    with _writable(path):
        path.mkdir(parents=True, exist_ok=True)
        if not force:
            _refuse_others(directory, experiment, scale)
        lock = (path / LOCK).open("w")
    with lock:
        _lock(lock, path)
        with _writable(path):
            if force:
                _remove(directory)
            draft = path / f"_{directory.description.name}"
            draft.write_text(json.dumps(describe(experiment, scale), indent=2) + "\n", "utf-8")
            draft.replace(directory.description)
        yield directory


@contextmanager
def _writable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"cannot write an experiment into '{path}': {error.strerror or error}; "
            "choose a directory that you may write to"
        ) from None


def _lock(file: IO[str], path: Path) -> None:
    """Let nobody else work here meanwhile; the lock goes with the process, however that ends."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"another experiment is being run in '{path}'; wait for it, or choose another --out"
        ) from None


def describe(experiment: Experiment, scale: str) -> dict[str, Any]:
    """Return what was run, as `experiment.json` tells it."""
    return {
        "name": experiment.name,
        "title": experiment.title,
        "scale": scale,
        "software": SOFTWARE,
        "source": experiment.source,
        "runs": len(experiment.scenarios(scale)),
        "figures": [figure.to_json() for figure in experiment.figures],
    }


def _refuse_others(directory: Directory, experiment: Experiment, scale: str) -> None:
    if not directory.description.exists():
        brought = (LOCK, directory.elsewhere.name)
        if any(path.name not in brought for path in directory.path.iterdir()):
            raise UsageError(f"'{directory.path}' is not empty and holds no experiment; {ANOTHER}")
        return
    try:
        found = json.loads(directory.description.read_text(encoding="utf-8"))
        there = tuple(found[key] for key in ("name", "scale", "software"))
    except (ValueError, KeyError, TypeError):
        raise UsageError(
            f"'{directory.description}' does not describe an experiment; {ANOTHER}"
        ) from None
    if there != (experiment.name, scale, SOFTWARE):
        name, at, by = there
        raise UsageError(
            f"'{directory.path}' holds experiment {name} at scale {at} by {by}, "
            f"not {experiment.name} at {scale} by {SOFTWARE}; {ANOTHER}"
        )
    runs = {scenario.run for scenario in experiment.scenarios(scale)}
    for file in (directory.traces / "runs").glob("*.parquet"):
        if file.stem not in runs and not file.name.startswith("_"):
            raise UsageError(
                f"'{directory.traces}' holds run '{file.stem}', which is not of this experiment; "
                f"{ANOTHER}"
            )


def _remove(directory: Directory) -> None:
    for path in directory.ours():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
