"""Running an experiment: sweep, verify, measure, judge the claims, draw the figures."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flexgroup.experiments.directory import Directory
from flexgroup.experiments.drawing import draw
from flexgroup.experiments.experiment import Experiment
from flexgroup.experiments.findings import VIOLATED, Findings
from flexgroup.experiments.page import page
from flexgroup.experiments.tables import CLAIMS, read_table, write_rows, write_table
from flexgroup.pipeline.sweep import Progress, Swept, sweep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Stage = Callable[[str], AbstractContextManager[Progress]]
"""Shows what is being done, and gives a function that is told how far it is."""


@dataclass(frozen=True)
class Result:
    """What an experiment found; the rest is in its directory."""

    directory: Directory
    found: int
    simulated: int
    claims: tuple[dict[str, Any], ...]
    points: tuple[dict[str, Any], ...]
    findings: Findings
    outcomes: dict[str, int]
    """How many verdicts hold, are violated, are unknown."""
    violations: tuple[dict[str, Any], ...]
    """The rows of `verdicts` about what is violated."""
    seconds: dict[str, float]
    """How long each stage took."""


def run_experiment(
    spark: SparkSession, experiment: Experiment, scale: str, directory: Directory, stage: Stage
) -> Result:
    """All stages; runs that an earlier attempt finished are not simulated again."""
    seconds: dict[str, float] = {}
    scenarios = experiment.scenarios(scale)
    with _timed(seconds, "simulate"), stage(f"simulating {len(scenarios)} runs") as progress:
        swept = sweep(spark, scenarios, directory.traces, progress)
    with _timed(seconds, "verify"), stage("verifying"):
        _verify(spark, directory)
    with _timed(seconds, "measure"), stage("measuring"):
        _measure(spark, directory)
    with _timed(seconds, "figures"), stage("drawing"):
        return _conclude(experiment, scale, directory, swept, seconds)


def _verify(spark: SparkSession, directory: Directory) -> None:
    from flexgroup.pipeline.read import open_trace_set
    from flexgroup.pipeline.verify import evidence, verify

    traces = open_trace_set(spark, str(directory.traces.absolute()))
    write_table(verify(traces), directory.tables / "verdicts", ["run", "property"])
    verdicts = spark.read.parquet(f"file:{(directory.tables / 'verdicts').absolute()}")
    write_table(
        evidence(traces, verdicts),
        directory.tables / "evidence",
        ["run", "property", "process", "step"],
    )


def _measure(spark: SparkSession, directory: Directory) -> None:
    from flexgroup.pipeline.measure import (
        METRICS,
        OF_TYPE,
        by_packet,
        measure_runs,
        points,
        with_packet_types,
    )
    from flexgroup.pipeline.read import open_trace_set

    traces = open_trace_set(spark, str(directory.traces.absolute()))
    write_table(by_packet(traces), directory.tables / "packets", ["run", "sender", "packet"])
    write_table(measure_runs(traces), directory.tables / "measures", ["run"])
    packets, measures = (
        spark.read.parquet(f"file:{(directory.tables / name).absolute()}")
        for name in ("packets", "measures")
    )
    measures = with_packet_types(measures, packets)
    types = [name for name in measures.columns if name.startswith(OF_TYPE)]
    write_table(
        points(measures, (*METRICS, *types)),
        directory.tables / "points",
        ["stack", "workload", "network", "processes", "clients", "faults"],
    )


def _conclude(
    experiment: Experiment,
    scale: str,
    directory: Directory,
    swept: Swept,
    seconds: dict[str, float],
) -> Result:
    described = {
        row["run"]: row
        for row in read_table(directory.tables / "measures", ["run", "stack", "network", "faults"])
    }
    verdicts = [
        {**described[row["run"]], **row} for row in read_table(directory.tables / "verdicts")
    ]
    points = read_table(directory.tables / "points")
    findings = Findings.of_tables(points, verdicts)
    claims = []
    for claim in experiment.claims_at(scale):
        holds, evidence = claim.judge(findings)
        claims.append(
            {
                "claim": claim.name,
                "section": claim.section,
                "paper": claim.words,
                "holds": holds,
                "evidence": evidence,
            }
        )
    write_rows(claims, CLAIMS, directory.tables / "claims")
    for figure in experiment.figures:
        if figure.image:
            draw(figure, findings, directory.path / figure.image)
    directory.page.write_text(page(experiment, scale, findings, claims), encoding="utf-8")
    return Result(
        directory,
        swept.found,
        len(swept.outcomes),
        tuple(claims),
        tuple(points),
        findings,
        dict(Counter(row["outcome"] for row in verdicts)),
        tuple(row for row in verdicts if row["outcome"] == VIOLATED),
        seconds,
    )


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - began
