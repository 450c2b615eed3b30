"""Sweeps of simulations as Spark jobs: each task takes one run after the other, and writes traces.

A run whose row is in `runs` is finished and not run again: that row is written last. Equal
scenarios give equal traces, so a sweep that was killed and started again leaves the same trace set
as one that was not. A run is written apart and moved into place when it is whole, so nothing gets
in the way of a task that is tried again, not even the same task of a driver that was just killed.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from flexgroup.core.errors import FlexGroupError
from flexgroup.sweeps.folder import refuse_if_unseen
from flexgroup.sweeps.tasks import MAKING, Progress, nobody, shared_out, watched
from flexgroup.trace.writer import run_file
from flexgroup.worlds.simulator.scenario import (
    Scenario,
    SimulationResult,
    parse_casts,
    record_scenario,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    progress: Progress = nobody,
) -> Swept:
    """Run what is not finished yet into one trace set."""
    directory = directory.absolute()
    pending = [scenario for scenario in scenarios if not is_finished(directory, scenario)]
    found = len(scenarios) - len(pending)
    if not pending:
        return Swept(found, (), ())
    shutil.rmtree(directory / MAKING, ignore_errors=True)
    with watched(lambda: _share_finished(directory, scenarios), progress):
        try:
            ran = simulate(spark, long_ones_first(pending), directory)
        except FlexGroupError as problem:
            raise FlexGroupError(f"a run of the sweep failed: {problem}") from None
    shutil.rmtree(directory / MAKING, ignore_errors=True)
    unseen = [scenario.run for scenario in pending if not is_finished(directory, scenario)]
    refuse_if_unseen(directory, len(unseen), "runs", "--out")
    ran.sort(key=lambda pair: pair[0].run)
    outcomes, seconds = zip(*ran, strict=True)
    return Swept(found, outcomes, seconds)


def is_finished(directory: Path, scenario: Scenario) -> bool:
    return (directory / "runs" / run_file(scenario.run)).exists()


def _share_finished(directory: Path, scenarios: Sequence[Scenario]) -> float:
    finished = sum(1 for scenario in scenarios if is_finished(directory, scenario))
    return finished / len(scenarios)


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

    def run_one(number: int) -> tuple[SimulationResult, float]:
        began = time.perf_counter()
        outcome = record_apart(scenarios[number], directory)
        return outcome, time.perf_counter() - began

    def begin() -> Callable[[int], tuple[SimulationResult, float]]:
        return run_one

    return shared_out(spark, len(scenarios), begin, directory)


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
