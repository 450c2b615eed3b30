"""`flexgroup verify`: did every run of a trace set keep its promises? On Spark."""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexgroup.cli.arguments import declare, make_folder, print_json
from flexgroup.cli.progress import waiting
from flexgroup.core.errors import UsageError

if TYPE_CHECKING:
    from flexgroup.cli.arguments import Commands

    Verdict = Mapping[str, Any]

HOLDS, VIOLATED, UNKNOWN = OUTCOMES = ("holds", "violated", "unknown")
TABLES = ("verdicts", "evidence")

SHOWN = 10
"""Violated verdicts that are printed in full."""


def add_to(commands: Commands) -> None:
    parser = declare(
        commands,
        "verify",
        run,
        "check the properties of every run of a trace set on Spark",
        "flexgroup verify runs/first",
    )
    add = parser.add_argument
    add("traces", metavar="DIR", help="a trace set, at any place that Spark can read")
    add("--master", metavar="URL", help="the Spark to use: spark://..., yarn, ... (this machine)")
    add("--property", action="append", metavar="NAME", dest="properties",
        help="check this one, of every run; may be given several times")  # fmt: skip
    add("--check", choices=("promised", "all"), default="promised",
        help="what each run's stack promises, or every property (promised)")  # fmt: skip
    add("--out", type=Path, metavar="DIR",
        help="write the Parquet tables verdicts and evidence here")  # fmt: skip
    add("--force", action="store_true", help="overwrite tables that exist")


def run(options: argparse.Namespace) -> int:
    from flexgroup.pipeline.reading.local_files import look_here, refuse_if_missing, settings_for
    from flexgroup.pipeline.result_tables import refuse_to_overwrite, write_tables
    from flexgroup.pipeline.spark.session import start, times_told

    chosen = _chosen(options)
    if options.out is not None and not options.force:
        refuse_to_overwrite(options.out, TABLES)
    refuse_if_missing(options.traces, options.master)
    files = look_here(options.traces)
    if options.out is not None:
        make_folder(options.out)
    with waiting("starting Spark", wanted=not options.json):
        started = start(options.master, "flexgroup verify", settings_for(files, options.master))
    began = time.perf_counter()
    # Only now: without Spark, start has said what to do about it.
    import pyarrow as pa

    from flexgroup.pipeline.reading.trace_set import open_trace_set
    from flexgroup.pipeline.spark.errors import readable
    from flexgroup.pipeline.verify import VERDICTS, evidence, verify

    with readable(options.traces), waiting("verifying", wanted=not options.json):
        traces = open_trace_set(started.spark, options.traces, files)
        # A row for each run and property: the driver can hold them, and every further question
        # to Spark would take longer than the answer.
        verdicts = verify(traces, chosen, refuse_mixed=True).toArrow().to_pylist()
        verdicts.sort(key=lambda row: (row["run"], row["property"]))
        if options.out is not None:
            written = (pa.Table.from_pylist(verdicts, VERDICTS), evidence(traces, verdicts))
            write_tables(dict(zip(TABLES, written, strict=True)), options.out)
    seconds = {"start": started.seconds, "verify": time.perf_counter() - began}
    if options.json:
        out = str(options.out) if options.out else None
        rows = [_as_json(verdict) for verdict in verdicts]
        print_json({"verdicts": rows, "out": out, "seconds": seconds})
    else:
        _show(verdicts)
        print(times_told(seconds["start"], "verifying", seconds["verify"]))
        if options.out is not None:
            print(f"tables written to {options.out}")
    return 1 if any(verdict["outcome"] == VIOLATED for verdict in verdicts) else 0


def _chosen(options: argparse.Namespace) -> Sequence[str] | None:
    from flexgroup.core.promises import PROPERTIES
    from flexgroup.pipeline.verify.promises import known

    if options.properties and options.check == "all":
        raise UsageError("--property and --check all contradict each other; give one of them")
    if options.check == "all":
        return PROPERTIES
    return known(options.properties) if options.properties else None


def _as_json(verdict: Verdict) -> dict[str, object]:
    witness = verdict["witness"]
    return {**verdict, "witness": None if witness is None else json.loads(witness)}


def _show(verdicts: Sequence[Verdict]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from flexgroup.properties.catalogue import PROPERTIES

    counts = Counter((verdict["property"], verdict["outcome"]) for verdict in verdicts)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("runs in which")
    for outcome in OUTCOMES:
        table.add_column(outcome, justify="right")
    for name in PROPERTIES:
        told = [counts[name, outcome] for outcome in OUTCOMES]
        if any(told):
            table.add_row(name, *(str(count or "") for count in told))
    Console().print(table)
    for outcome in (VIOLATED, UNKNOWN):
        _print_verdicts([verdict for verdict in verdicts if verdict["outcome"] == outcome])


def _print_verdicts(verdicts: Sequence[Verdict]) -> None:
    for verdict in verdicts[:SHOWN]:
        explanation = verdict["explanation"].splitlines()
        lines = [f"{verdict['property']}: {verdict['outcome']}", *explanation]
        print(f"run {verdict['run']}\n  " + "\n    ".join(lines))
    if len(verdicts) > SHOWN:
        print(f"and {len(verdicts) - SHOWN} more; --json or --out has them all")
