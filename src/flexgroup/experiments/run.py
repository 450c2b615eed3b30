"""Running an experiment: sweep, verify, measure, judge the claims, draw the figures."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from flexgroup.experiments.directory import Directory
from flexgroup.experiments.experiment import Experiment
from flexgroup.experiments.findings import Findings
from flexgroup.experiments.page import page
from flexgroup.experiments.sweep import Swept, sweep
from flexgroup.metrics.catalogue import METRICS, PACKETS_OF_TYPE
from flexgroup.metrics.tables import points, with_packet_types
from flexgroup.pipeline.result_tables import in_order, write_tables
from flexgroup.properties.verdict import Outcome
from flexgroup.report.figures import figure_file
from flexgroup.sweeps.tasks import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flexgroup.pipeline.reading.trace_set import TraceSet

CLAIMS = pa.schema(
    [
        ("claim", pa.string()),
        ("section", pa.string()),
        ("paper", pa.string()),
        ("holds", pa.bool_()),
        ("evidence", pa.string()),
    ]
)
"""The columns of the table `claims`."""

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
    outcomes: dict[str, int]
    """How many verdicts hold, are violated, are unknown."""
    violations: tuple[dict[str, Any], ...]
    """The rows of `verdicts` about what is violated."""
    seconds: dict[str, float]
    """How long each stage took."""


def run_experiment(
    spark: SparkSession, experiment: Experiment, scale: str, directory: Directory, stage: Stage
) -> Result:
    """Go through all stages; runs that an earlier attempt finished are not simulated again."""
    from flexgroup.pipeline.reading.trace_set import open_trace_set

    seconds: dict[str, float] = {}
    scenarios = experiment.scenarios(scale)
    with _timed(seconds, "simulate"), stage(f"simulating {len(scenarios)} runs") as progress:
        swept = sweep(spark, scenarios, directory.traces, progress)
    with _timed(seconds, "verify"), stage("verifying"):
        traces = open_trace_set(spark, str(directory.traces.absolute()))
        _verify(traces, directory.tables)
    with _timed(seconds, "measure"), stage("measuring"):
        _measure(traces, directory.tables)
    with _timed(seconds, "figures"), stage("drawing"):
        return _conclude(experiment, scale, directory, swept, seconds)


def _verify(traces: TraceSet, tables: Path) -> None:
    from flexgroup.pipeline.verify import evidence, verify

    verdicts = in_order(verify(traces).toArrow(), "run", "property")
    events = evidence(traces, verdicts.to_pylist())
    write_tables({"verdicts": verdicts, "evidence": events}, tables)


def _measure(traces: TraceSet, tables: Path) -> None:
    from flexgroup.pipeline.measure import Measured

    measured = Measured(traces)
    typed = with_packet_types(measured.measures, measured.packets)
    types = [name for name in typed.column_names if name.startswith(PACKETS_OF_TYPE)]
    order = ("stack", "workload", "network", "processes", "clients", "faults")
    found = in_order(points(typed, (*METRICS, *types)), *order)
    write_tables(
        {"packets": measured.packets, "measures": measured.measures, "points": found}, tables
    )


def _conclude(
    experiment: Experiment,
    scale: str,
    directory: Directory,
    swept: Swept,
    seconds: dict[str, float],
) -> Result:
    measures, judged, points = (
        pq.read_table(directory.tables / name).to_pylist()
        for name in ("measures", "verdicts", "points")
    )
    described = {
        row["run"]: {name: row[name] for name in ("stack", "network", "faults")} for row in measures
    }
    verdicts = [{**described[row["run"]], **row} for row in judged]
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
    write_tables({"claims": pa.Table.from_pylist(claims, CLAIMS)}, directory.tables)
    for figure in experiment.figures:
        if figure.image:
            file = directory.path / figure.image
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"{figure_file(figure, points)}\n", encoding="utf-8")
    shown = page(experiment, scale, points, claims, findings, directory.measured_elsewhere())
    directory.page.write_text(shown, encoding="utf-8")
    return Result(
        directory,
        swept.found,
        len(swept.outcomes),
        tuple(claims),
        tuple(points),
        dict(Counter(row["outcome"] for row in verdicts)),
        tuple(row for row in verdicts if row["outcome"] == Outcome.VIOLATED),
        seconds,
    )


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - began
