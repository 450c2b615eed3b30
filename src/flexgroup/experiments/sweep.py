"""Sweeps of simulations as Spark jobs: a task for each core, which takes one run after the other
and writes their traces.

A run whose row is in `runs` is finished and not run again: that row is written last. Equal
scenarios give equal traces, so a sweep that was killed and started again leaves the same trace set
as one that was not. A run is written apart and moved into place when it is whole, so nothing gets
in the way of a task that is tried again, not even the same task of a driver that was just killed.

A Spark task in Python takes a tenth of a second besides its work, which is more than a short run
takes. So there are only as many tasks as cores, and whichever is done with a run takes the next
that nobody has: by creating a file, which only one can, on a file system that all of them share.
"""

from __future__ import annotations

import gc
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from flexgroup.core.errors import FlexGroupError, UsageError
from flexgroup.pipeline.spark.session import executors_are_here
from flexgroup.trace.writer import run_file
from flexgroup.worlds.simulator.scenario import (
    Scenario,
    SimulationResult,
    parse_casts,
    record_scenario,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS_BETWEEN_LOOKS = 0.2

MAKING = "_making"
"""Where runs are while they are not whole; readers pass over the name."""

Progress = Callable[[float], None]
"""Told the share of the runs that are finished, from 0 to 1."""


@dataclass(frozen=True)
class Swept:
    """What a sweep did: the runs it found finished, those it ran, and how long each of these took
    on its executor."""

    found: int
    outcomes: tuple[SimulationResult, ...]
    seconds: tuple[float, ...]


def sweep(
    spark: SparkSession,
    scenarios: Sequence[Scenario],
    directory: Path,
    progress: Progress = lambda share: None,
) -> Swept:
    """Run what is not finished yet into one trace set."""
    from pyspark.errors import PySparkException

    directory = directory.absolute()
    pending = [scenario for scenario in scenarios if not is_finished(directory, scenario)]
    found = len(scenarios) - len(pending)
    if not pending:
        return Swept(found, (), ())
    shutil.rmtree(directory / MAKING, ignore_errors=True)
    with _watching(directory, scenarios, progress):
        try:
            ran = simulate(spark, long_ones_first(pending), directory)
        except PySparkException as problem:
            raise FlexGroupError(f"a run of the sweep failed: {_cause(problem)}") from None
    shutil.rmtree(directory / MAKING, ignore_errors=True)
    unseen = [scenario.run for scenario in pending if not is_finished(directory, scenario)]
    if unseen:
        raise UsageError(
            f"the executors wrote {len(unseen)} runs into '{directory}' that this machine does not "
            "see; give --out on a file system that all machines share"
        )
    ran.sort(key=lambda pair: pair[0].run)
    outcomes, seconds = zip(*ran, strict=True)
    return Swept(found, outcomes, seconds)


def is_finished(directory: Path, scenario: Scenario) -> bool:
    return (directory / "runs" / run_file(scenario.run)).exists()


def long_ones_first(scenarios: Sequence[Scenario]) -> list[Scenario]:
    """Sort them so that no long one is left for the end, when other cores have nothing to do."""
    return sorted(scenarios, key=expected_work, reverse=True)


def expected_work(scenario: Scenario) -> float:
    """Roughly proportional to the events of a run, which is what it takes to order runs."""
    by_clients = scenario.duration * scenario.clients * (scenario.rate or 1.0)
    planned = len(parse_casts(scenario.casts, scenario.processes))
    return (by_clients + planned) * scenario.processes


def simulate(
    spark: SparkSession, scenarios: Sequence[Scenario], directory: Path
) -> list[tuple[SimulationResult, float]]:
    """Run the scenarios, begun in this order by whichever task is free; return how each ended, and
    how long it took."""
    from pyspark import TaskContext

    # Of this sweep alone: what a killed one claimed does not count.
    claims = directory / MAKING / f"claims-{uuid4().hex}"

    def run_some(numbers: Iterable[int]) -> Iterator[tuple[SimulationResult, float]]:
        if not gc.get_freeze_count():
            # Spark's workers search all objects for garbage after each task; with ours and its
            # modules loaded that is longer than a small run.
            gc.freeze()
        task = TaskContext.get()
        assert task is not None
        owner, is_retry = str(task.partitionId()), task.attemptNumber() > 0
        for number in claimed(claims, len(scenarios), owner, is_retry=is_retry):
            began = time.perf_counter()
            outcome = record_apart(scenarios[number], directory)
            yield outcome, time.perf_counter() - began

    tasks = min(len(scenarios), tasks_at_once(spark))
    return spark.sparkContext.parallelize(range(tasks), tasks).mapPartitions(run_some).collect()


def claimed(folder: Path, pieces: int, owner: str, *, is_retry: bool = False) -> Iterator[int]:
    """Yield the numbers of the pieces that fall to this owner, each claimed when it is asked for.

    What an owner reports is lost if it dies. So whoever tries again under the same name gets all
    that the one before had claimed, and what somebody claimed who died before writing a name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(pieces):
        claim = folder / str(number)
        if _is_created(claim, owner) or (is_retry and claim.read_text() in (owner, "")):
            yield number


def _is_created(claim: Path, owner: str) -> bool:
    try:
        with claim.open("x") as file:
            file.write(owner)
    except FileExistsError:
        return False
    return True


def tasks_at_once(spark: SparkSession) -> int:
    """One for each core; on a cluster some more, for executors that come late. A task that finds
    nothing left to do costs little."""
    cores = spark.sparkContext.defaultParallelism
    return cores if executors_are_here(spark) else 4 * cores


def record_apart(scenario: Scenario, directory: Path) -> SimulationResult:
    """Record a run in a directory of its own, then move it into the trace set, its row last."""
    apart = directory / MAKING / f"{scenario.run}-{uuid4().hex}"
    outcome = record_scenario(scenario, apart)
    for part in ("events", "runs"):
        for file in sorted((apart / part).rglob("*.parquet")):
            place = directory / file.relative_to(apart)
            place.parent.mkdir(parents=True, exist_ok=True)
            file.replace(place)
    shutil.rmtree(apart)
    return outcome


@contextmanager
def _watching(directory: Path, scenarios: Sequence[Scenario], progress: Progress) -> Iterator[None]:
    """Tell the progress while a job runs, by looking for what it has finished."""
    over = threading.Event()

    def look() -> None:
        waiting = list(scenarios)
        while waiting:
            waiting = [scenario for scenario in waiting if not is_finished(directory, scenario)]
            progress(1 - len(waiting) / len(scenarios))
            if over.wait(SECONDS_BETWEEN_LOOKS):
                return

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _cause(problem: Exception) -> str:
    """The last line of the executor's traceback: what went wrong there."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    errors = [line for line in lines if line.partition(":")[0].endswith(("Error", "Exception"))]
    return errors[-1].partition(": ")[2] if errors else lines[0]
