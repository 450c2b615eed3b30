"""The part of an experiment that is run on real servers, before anything is simulated.

Finished runs are not made again, whoever was killed meanwhile: their rows are in the trace set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from flexgroup.core.errors import FlexGroupError, UsageError
from flexgroup.experiments.calibration import calibrate, read_calibration, write_calibration
from flexgroup.experiments.dcc_network import chapter
from flexgroup.experiments.directory import Directory, reserved_directory
from flexgroup.experiments.experiment import Experiment, RealRun
from flexgroup.experiments.real_runs import (
    Servers,
    given_servers,
    is_finished,
    local_servers,
    record_real,
)
from flexgroup.experiments.run import Stage
from flexgroup.sweeps.tasks import Progress

ATTEMPTS = 2
"""How often a run is tried: a machine that is asleep for a while makes servers exclude another."""


@dataclass(frozen=True)
class Given:
    """Servers that run somewhere, instead of those that are started here."""

    addresses: tuple[str, ...]
    traces: Path
    """The folder that they record into, as it is seen here."""


@contextmanager
def network_chapter(
    scale: str,
    path: Path,
    force: bool,
    machine: Path | None,
    given: Given | None,
    stage: Stage,
) -> Iterator[tuple[Experiment, Directory]]:
    """Calibrate unless that was done, make the real runs that are lacking, and give the experiment
    whose simulations are to follow, with its directory."""
    if given is not None and machine is None:
        raise UsageError(
            "predictions need the constants of the machine that the servers run on: run flexgroup "
            "calibrate --out FILE there, and give --machine FILE"
        )
    calibrated = None if machine is None else read_calibration(machine)
    file = Directory(path).machine
    if calibrated is None and file.exists() and not force:
        calibrated = read_calibration(file)
    known = chapter(None if calibrated is None else calibrated.constants)
    with reserved_directory(known, scale, path, force) as directory:
        if calibrated is None:
            with stage("calibrating") as progress:
                calibrated = calibrate(directory.calibration, progress)
        write_calibration(calibrated, directory.machine)
        experiment = chapter(calibrated.constants, directory.traces)
        directory.tell(experiment, scale)
        runs = experiment.real[scale]
        with stage(f"{len(runs)} runs on real servers") as progress:
            make_real_runs(runs, directory.traces, given, progress)
        yield experiment, directory


def make_real_runs(
    runs: Sequence[RealRun], traces: Path, given: Given | None, progress: Progress
) -> int:
    """Make those that are not finished, with one cluster for each size; return how many."""
    made = 0
    pending = [real for real in runs if not is_finished(traces, real)]
    done = len(runs) - len(pending)
    for size, group in groupby(pending, key=lambda real: real.processes):
        left = list(group)
        attempts = 0
        while left:
            try:
                with _servers(size, given) as servers:
                    while left:
                        progress(done / len(runs))
                        record_real(left[0], servers, traces)
                        left.pop(0)
                        attempts = 0
                        done += 1
                        made += 1
            except FlexGroupError:
                attempts += 1
                if given is not None or attempts == ATTEMPTS:
                    raise
    return made


def _servers(size: int, given: Given | None) -> AbstractContextManager[Servers]:
    if given is None:
        return local_servers(size)
    if len(given.addresses) < size:
        raise UsageError(
            f"{size} servers are needed, and {len(given.addresses)} were given with --connect"
        )
    return given_servers(given.addresses[:size], given.traces)
