"""The directory of an experiment: what lies where, and whether it may be written to."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flexgroup.core.errors import UsageError
from flexgroup.experiments.experiment import Experiment
from flexgroup.sweeps.folder import LOCK, locked, writable, write_whole
from flexgroup.trace.run import SOFTWARE

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
        self.machine = path / "machine.json"
        self.calibration = path / "calibration"

    def measured_elsewhere(self) -> list[list[str]]:
        """Return the rows of the table that something else wrote here, the head first."""
        if not self.elsewhere.exists():
            return []
        with self.elsewhere.open(encoding="utf-8", newline="") as file:
            return [row for row in csv.reader(file) if row]

    def tell(self, experiment: Experiment, scale: str) -> None:
        """Write what is run here."""
        described = json.dumps(describe(experiment, scale), indent=2) + "\n"
        write_whole(self.description, described.encode())

    def ours(self) -> list[Path]:
        """Everything that an experiment writes."""
        drawn = self.path / "figures", self.path / "report.html"
        machine = self.machine, self.calibration
        return [self.traces, self.tables, self.page, *drawn, *machine, self.description]


@contextmanager
def reserved_directory(
    experiment: Experiment, scale: str, path: Path, force: bool
) -> Iterator[Directory]:
    """Make the directory ready for this experiment, and keep others away meanwhile.

    A directory with the same experiment is taken up where it was left; anything else in the way
    is replaced only if forced.
    """
    directory = Directory(path)
    with writable(path, "an experiment", "--out"):
        if path.exists() and not force:
            _refuse_others(directory, experiment, scale)
    with locked(path, "an experiment", "--out"):
        with writable(path, "an experiment", "--out"):
            if force:
                _remove(directory)
            directory.tell(experiment, scale)
        yield directory


def describe(experiment: Experiment, scale: str) -> dict[str, Any]:
    """Return what was run, as `experiment.json` tells it."""
    return {
        "name": experiment.name,
        "title": experiment.title,
        "scale": scale,
        "software": SOFTWARE,
        "source": experiment.source,
        "runs": len(experiment.scenarios(scale)) + len(experiment.real.get(scale, ())),
        "figures": [figure.to_json() for figure in experiment.figures],
    }


def _refuse_others(directory: Directory, experiment: Experiment, scale: str) -> None:
    if not directory.description.exists():
        brought = (LOCK, directory.elsewhere.name, directory.machine.name)
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
    runs.update(real.run for real in experiment.real.get(scale, ()))
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
