"""Experiments that are over in a second, for tests."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from flexgroup.experiments.directory import reserved_directory
from flexgroup.experiments.experiment import PAPER, SMALL, Claim, Experiment, Grid
from flexgroup.experiments.figure import Figure, Kind, Series
from flexgroup.experiments.run import Result, run_experiment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GRID = Grid(("skeen", "dcc"), ("random:2",), (1, 8), (1, 2), 0.4, (4,))

TINY = Experiment(
    "tiny",
    "Two protocols, four processes",
    "a test",
    {SMALL: [GRID], PAPER: [GRID]},
    (
        Figure(
            "t1",
            "Two of four",
            Kind.CURVES,
            (
                Series("Skeen", "skeen", "random:2", processes=4),
                Series("DCC", "dcc", "random:2", processes=4),
            ),
            ("throughput", "latency"),
            "1",
            "Nothing, because no paper measured it.",
        ),
    ),
    (
        Claim(
            "more",
            "1",
            "more clients get more done",
            lambda findings: (
                findings.at("dcc", "random:2", 8, 4).throughput
                > findings.at("dcc", "random:2", 1, 4).throughput,
                "as measured",
            ),
        ),
    ),
)

CIRCLE = Grid(("dcc-published",), ("random:2",), (8,), (3,), 0.05, (4,), ("lan:jitter=1ms",))

BROKEN = Experiment(
    "tiny-broken",
    "One run in which DCC as published goes round in a circle",
    "a test",
    {SMALL: [CIRCLE], PAPER: [CIRCLE]},
)


def run_here(spark: SparkSession, experiment: Experiment, out: Path) -> Result:
    with reserved_directory(experiment, SMALL, out, force=False) as directory:
        return run_experiment(spark, experiment, SMALL, directory, lambda _: nullcontext(_untold))


def _untold(share: float) -> None:
    """Nobody watches."""
