"""`flexgroup verify`: did every run of a trace set keep its promises? On Spark."""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexgroup.cli.arguments import declare, print_json
from flexgroup.core.errors import UsageError

if TYPE_CHECKING:
    from flexgroup.cli.arguments import Commands
    from flexgroup.pipeline.read import TraceSet

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
    from flexgroup.pipeline.session import SMALL_JOB, start, times_told
    from flexgroup.pipeline.trace_files import look_here

    chosen = _chosen(options)
    if options.out is not None:
        _refuse_to_overwrite(options.out, options.force)
    files = look_here(options.traces)
    is_small = files is not None and len(files.runs_to_read()) == len(files.described)
    settings = SMALL_JOB if options.master is None and is_small else {}
    started = start(options.master, "flexgroup verify", settings)
    began = time.perf_counter()
    # Only now: without Spark, start has said what to do about it.
    from flexgroup.pipeline.read import open_trace_set
    from flexgroup.pipeline.spark_errors import readable
    from flexgroup.pipeline.verify import verify

    with readable(options.traces):
        traces = open_trace_set(started.spark, options.traces, files)
        # A row for each run and property: the driver can hold them, and every further question
        # to Spark would take longer than the answer.
        verdicts = verify(traces, chosen, refuse_mixed=True).toArrow().to_pylist()
        verdicts.sort(key=lambda row: (row["run"], row["property"]))
        if options.out is not None:
            _write(traces, verdicts, options.out)
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
    from flexgroup.pipeline.verify.promises import EVERYTHING, known

    if options.properties and options.check == "all":
        raise UsageError("--property and --check all contradict each other; give one of them")
    if options.check == "all":
        return EVERYTHING
    return known(options.properties) if options.properties else None


def _refuse_to_overwrite(out: Path, force: bool) -> None:
    present = [name for name in TABLES if (out / name).exists()]
    if present and not force:
        raise UsageError(
            f"'{out}' already holds {' and '.join(present)}; "
            "choose another --out, or add --force to replace them"
        )


def _write(traces: TraceSet, verdicts: Sequence[Verdict], out: Path) -> None:
    """The tables, each under a name that readers pass over until both are whole."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from flexgroup.pipeline.verify import EVIDENCE, VERDICTS, Violated, evidence_of

    violated = [
        Violated(row["run"], row["property"], row["witness"])
        for row in verdicts
        if row["outcome"] == VIOLATED
    ]
    tables = {
        "verdicts": pa.Table.from_pylist(verdicts, VERDICTS),
        "evidence": evidence_of(traces, violated).toArrow() if violated else EVIDENCE.empty_table(),
    }
    try:
        for name, table in tables.items():
            (out / f"_{name}").mkdir(parents=True, exist_ok=True)
            pq.write_table(table, out / f"_{name}" / "part-0.parquet")
        for name in tables:
            shutil.rmtree(out / name, ignore_errors=True)
            (out / f"_{name}").rename(out / name)
    except OSError as problem:
        raise UsageError(f"cannot write '{out}': {problem}; choose another --out") from None


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
