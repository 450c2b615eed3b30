"""`flexgroup measure`: throughput, latency and costs of the runs of a trace set, on Spark."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flexgroup.cli.arguments import Command, flag, print_json
from flexgroup.cli.spark_commands import (
    master_option,
    tables_options,
    trace_job,
    traces_argument,
)
from flexgroup.core.errors import UsageError

if TYPE_CHECKING:
    from flexgroup.metrics.catalogue import Metric

    Point = Mapping[str, Any]

TABLES = ("measures", "points", "packets")

ORDER = ("workload", "network", "processes", "clients", "stack", "options", "faults")
"""The columns by which points are sorted."""

SHOWN = (
    "throughput",
    "latency_last_trimmed",
    "latency_last_p99",
    "latency_group_trimmed",
    "latency_first_trimmed",
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
"""The metrics in the table that is printed."""


COMMAND = Command(
    "measure",
    "measure the runs of a trace set on Spark: throughput, latency, costs",
    "flexgroup measure runs/first --out runs/first/tables --csv",
    (
        traces_argument(),
        master_option(),
        *tables_options(TABLES),
        flag("--csv", "write each table as CSV, too, beside the others"),
    ),
)


def run(options: argparse.Namespace) -> int:
    if options.csv and options.out is None:
        raise UsageError("--csv writes files; say where with --out DIR")
    with trace_job(options, "measure", "measuring", TABLES) as job:
        from flexgroup.pipeline.measure import Measured
        from flexgroup.pipeline.result_tables import in_order, write_tables

        measured = Measured(job.traces)
        if options.out is not None:
            tables = {name: getattr(measured, name) for name in TABLES}
            write_tables(tables, options.out, options.csv)
        points = in_order(measured.points, *ORDER).to_pylist()
    if options.json:
        print_json({"points": points, **job.to_json()})
    else:
        _print_table(points)
        job.print_times("measuring")
    return 0


def _print_table(points: Sequence[Point]) -> None:
    from rich.console import Console

    from flexgroup.cli.tables import table
    from flexgroup.metrics.catalogue import METRICS, TOLD_APART

    # What all points have in common need not be said in every row.
    described = ["stack", "workload"] + [
        name
        for name in ("processes", "clients", "network", "options", "faults", "world", "software")
        if len({point[name] for point in points}) > 1
    ]
    hidden = frozenset() if any(point["groups"] for point in points) else TOLD_APART
    shown = [
        METRICS[name]
        for name in SHOWN
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
    if any(point["runs"] > 1 for point in points):
        console.print("means over repetitions, ± half the 95% confidence interval", style="dim")


def _with_interval(point: Point, metric: Metric) -> str:
    from flexgroup.metrics.catalogue import HALF_WIDTH

    value, half_width = point[metric.name], point[metric.name + HALF_WIDTH]
    if value is None:
        return ""
    return metric.text(value) + (f" ±{metric.text(half_width)}" if half_width else "")
