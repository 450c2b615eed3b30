"""`flexgroup measure`: throughput, latency and costs of the runs of a trace set, on Spark."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flexgroup.cli.arguments import Command, print_json
from flexgroup.cli.spark_commands import (
    ENGINE_OPTION,
    master_option,
    tables_options,
    trace_job,
    traces_argument,
)

if TYPE_CHECKING:
    from flexgroup.metrics.catalogue import Metric
    from flexgroup.pipeline.in_memory.measures import MeasuredHere
    from flexgroup.pipeline.measure import Measured
    from flexgroup.pipeline.reading.local_files import LocalFiles
    from flexgroup.pipeline.reading.trace_set import TraceSet

    Point = Mapping[str, Any]

TABLES = ("measures", "points", "packets")

ORDER = ("workload", "network", "processes", "clients", "stack", "options", "faults")
"""The columns by which points are sorted."""

BESIDE = (
    "latency_last_p99",
    "latency_group_mean",
    "latency_first_mean",
    "steps",
    "steps_group",
    "steps_first",
    "volume",
    "header_bytes",
    "genuine",
    "fast",
    "convoy_delay",
    "queue_mean",
    "busy",
)
"""The metrics in the table that is printed, beside throughput and latency."""


COMMAND = Command(
    "measure",
    "measure the runs of a trace set, on Spark or here: throughput, latency, costs",
    "flexgroup measure runs/first --out runs/first/tables --csv",
    (
        traces_argument(),
        master_option(),
        ENGINE_OPTION,
        *tables_options(TABLES),
    ),
)


def run(options: argparse.Namespace) -> int:
    with trace_job(options, "measure", "measuring", TABLES) as job:
        from flexgroup.pipeline.result_tables import in_order

        measured = _measured(job.traces)
        if options.out is not None:
            job.write({name: getattr(measured, name) for name in TABLES})
        points = in_order(measured.points, *ORDER).to_pylist()
    if options.json:
        print_json({"points": points, **job.to_json()})
    else:
        _print_table(points)
        job.print_times("measuring")
    return 0


def _measured(traces: TraceSet | LocalFiles) -> Measured | MeasuredHere:
    from flexgroup.pipeline.in_memory.measures import MeasuredHere
    from flexgroup.pipeline.reading.local_files import LocalFiles

    if isinstance(traces, LocalFiles):
        return MeasuredHere(traces)
    from flexgroup.pipeline.measure import Measured

    return Measured(traces)


def _print_table(points: Sequence[Point]) -> None:
    from rich.console import Console

    from flexgroup.cli.tables import table
    from flexgroup.metrics.catalogue import HEADLINES, METRICS, TOLD_APART, WHICH

    # What all points have in common need not be said in every row.
    alone = ["run"] if any(point["run"] is not None for point in points) else []
    described = [*alone, "stack", "workload"] + [
        name
        for name in ("processes", "clients", "network", "options", "faults", "world", "software")
        if len({point[name] for point in points}) > 1
    ]
    hidden = frozenset() if any(point["groups"] for point in points) else TOLD_APART
    shown = [
        METRICS[name]
        for name in (*HEADLINES, *BESIDE)
        if name not in hidden and any(point[name] is not None for point in points)
    ]
    numbers = ["runs", *(metric.short for metric in shown)]
    rows = [
        [
            *("" if point[name] is None else point[name] for name in described),
            f"{point['runs']}" + (f" ({point['cut_runs']} cut)" * bool(point["cut_runs"])),
            *(_with_interval(point, metric) for metric in shown),
        ]
        for point in points
    ]
    console = Console(width=None if Console().is_terminal else 200)
    console.print(table([*described, *numbers], rows, numbers, pad_edge=False))
    console.print(WHICH, style="dim")
    if any(point["runs"] > 1 for point in points):
        console.print("means over repetitions, ± half the 95% confidence interval", style="dim")


def _with_interval(point: Point, metric: Metric) -> str:
    from flexgroup.metrics.catalogue import HALF_WIDTH

    value, half_width = point[metric.name], point[metric.name + HALF_WIDTH]
    if value is None:
        return ""
    return metric.text(value) + (f" ±{metric.text(half_width)}" if half_width else "")
