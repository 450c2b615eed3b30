"""`flexgroup measure`: throughput, latency and costs of the runs of a trace set, on Spark."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexgroup.cli.arguments import declare, make_folder, print_json
from flexgroup.cli.progress import waiting
from flexgroup.core.errors import UsageError

if TYPE_CHECKING:
    from flexgroup.cli.arguments import Commands
    from flexgroup.metrics.catalogue import Metric

    Point = Mapping[str, Any]

TABLES = ("measures", "points", "packets")

SHOWN = (
    "throughput",
    "latency_last_trimmed",
    "latency_last_p99",
    "steps",
    "volume",
    "header_bytes",
    "genuine",
    "fast",
    "convoy_delay",
    "queue_mean",
    "busy",
)
"""The metrics in the table that is printed."""


def add_to(commands: Commands) -> None:
    parser = declare(
        commands,
        "measure",
        run,
        "measure the runs of a trace set on Spark: throughput, latency, costs",
        "flexgroup measure runs/first --out runs/first/tables --csv",
    )
    add = parser.add_argument
    add("traces", metavar="DIR", help="a trace set, at any place that Spark can read")
    add("--master", metavar="URL", help="the Spark to use: spark://..., yarn, ... (this machine)")
    add("--out", type=Path, metavar="DIR",
        help="write the Parquet tables measures, points and packets here")  # fmt: skip
    add("--csv", action="store_true", help="write each table as CSV, too, beside the others")
    add("--force", action="store_true", help="overwrite tables that exist")


def run(options: argparse.Namespace) -> int:
    if options.csv and options.out is None:
        raise UsageError("--csv writes files; say where with --out DIR")

    from flexgroup.pipeline.reading.local_files import look_here, refuse_if_missing, settings_for
    from flexgroup.pipeline.result_tables import refuse_to_overwrite, write_tables
    from flexgroup.pipeline.spark.session import start

    if options.out is not None and not options.force:
        refuse_to_overwrite(options.out, TABLES)
    refuse_if_missing(options.traces, options.master)
    files = look_here(options.traces)
    if options.out is not None:
        make_folder(options.out)
    with waiting("starting Spark", wanted=not options.json):
        started = start(options.master, "flexgroup measure", settings_for(files, options.master))
    began = time.perf_counter()
    # Only now: without Spark, start has said what to do about it.
    from flexgroup.pipeline.measure import Measured
    from flexgroup.pipeline.reading.trace_set import open_trace_set
    from flexgroup.pipeline.spark.errors import readable

    with readable(options.traces), waiting("measuring", wanted=not options.json):
        measured = Measured(open_trace_set(started.spark, options.traces, files))
        if options.out is not None:
            tables = {name: getattr(measured, name) for name in TABLES}
            write_tables(tables, options.out, options.csv)
        rows = measured.points.to_pylist()
    rows.sort(key=_by_description)
    seconds = {"start": started.seconds, "measure": time.perf_counter() - began}
    _show(options, rows, seconds)
    return 0


def _by_description(point: Point) -> list[str]:
    ordered = ("workload", "network", "processes", "clients", "stack", "options", "faults")
    return [
        f"{point[name]:09}" if isinstance(point[name], int) else str(point[name])
        for name in ordered
    ]


def _show(options: argparse.Namespace, points: Sequence[Point], seconds: Mapping[str, Any]) -> None:
    if options.json:
        out = str(options.out) if options.out else None
        print_json({"points": points, "out": out, "seconds": seconds})
        return
    from flexgroup.pipeline.spark.session import times_told

    _print_table(points)
    print(times_told(seconds["start"], "measuring", seconds["measure"]))
    if options.out:
        print(f"tables written to {options.out}")


def _print_table(points: Sequence[Point]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from flexgroup.metrics.catalogue import METRICS

    # What all points have in common need not be said in every row.
    described = ["stack", "workload"] + [
        name
        for name in ("processes", "clients", "network", "options", "faults", "world", "software")
        if len({point[name] for point in points}) > 1
    ]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in described:
        table.add_column(name, overflow="fold")
    table.add_column("runs", justify="right")
    shown = [METRICS[name] for name in SHOWN if any(point[name] is not None for point in points)]
    for metric in shown:
        table.add_column(metric.short, justify="right")
    for point in points:
        texts = ["" if point[name] is None else str(point[name]) for name in described]
        texts.append(f"{point['runs']}" + (f" ({point['cut_runs']} cut)" * bool(point["cut_runs"])))
        table.add_row(*texts, *(_with_interval(point, metric) for metric in shown))
    console = Console(width=None if Console().is_terminal else 200)
    console.print(table)
    if any(point["runs"] > 1 for point in points):
        console.print("means over repetitions, ± half the 95% confidence interval", style="dim")


def _with_interval(point: Point, metric: Metric) -> str:
    from flexgroup.metrics.catalogue import HALF_WIDTH

    value, half_width = point[metric.name], point[metric.name + HALF_WIDTH]
    if value is None:
        return ""
    return metric.text(value) + (f" ±{metric.text(half_width)}" if half_width else "")
