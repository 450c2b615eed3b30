"""`flexgroup verify`: did every run of a trace set keep its promises? On Spark."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexgroup.cli.arguments import declare, print_json
from flexgroup.core.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexgroup.cli.arguments import Commands
    from flexgroup.pipeline.read import TraceSet

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
    from flexgroup.properties.catalogue import PROPERTIES

    if options.properties and options.check == "all":
        raise UsageError("--property and --check all contradict each other; give one of them")
    chosen = list(PROPERTIES) if options.check == "all" else options.properties

    from flexgroup.pipeline.session import start

    started = start(options.master, "flexgroup verify")
    began = time.perf_counter()
    # Only now: without Spark, start has said what to do about it.
    from flexgroup.pipeline.read import open_trace_set
    from flexgroup.pipeline.spark_errors import readable
    from flexgroup.pipeline.verify import verify

    if options.out is not None:
        _refuse_to_overwrite(options.out, options.force)
    with readable(options.traces):
        traces = open_trace_set(started.spark, options.traces)
        _refuse_mixed_runs(traces)
        verdicts = verify(traces, chosen).persist()
        outcomes = _outcomes(verdicts)
        if options.out is not None:
            _write(traces, verdicts, options.out)
        violated = sum(counts["violated"] for counts in outcomes.values())
        seconds = {"start": started.seconds}
        if options.json:
            rows = [_as_json(row) for row in verdicts.orderBy("run", "property").toLocalIterator()]
            seconds["verify"] = time.perf_counter() - began
            out = str(options.out) if options.out else None
            print_json({"verdicts": rows, "out": out, "seconds": seconds})
        else:
            _show(verdicts, outcomes, violated)
            seconds["verify"] = time.perf_counter() - began
            print(
                f"Spark started in {seconds['start']:.1f} s, "
                f"verifying took {seconds['verify']:.1f} s"
            )
            if options.out is not None:
                print(f"tables written to {options.out}")
    return 1 if violated else 0


def _refuse_mixed_runs(traces: TraceSet) -> None:
    from flexgroup.pipeline.read import duplicate_steps

    doubles = duplicate_steps(traces).join(traces.runs.select("number", "run"), "number").limit(1)
    for row in doubles.collect():
        raise UsageError(
            f"in run '{row.run}' process {row.process} has {row.rows} events at step {row.step}: "
            "two runs with the same name are mixed; keep one of them "
            "(`flexgroup validate` names the files)"
        )


def _refuse_to_overwrite(out: Path, force: bool) -> None:
    present = [name for name in ("verdicts", "evidence") if (out / name).exists()]
    if present and not force:
        raise UsageError(
            f"'{out}' already holds {' and '.join(present)}; "
            "choose another --out, or add --force to replace them"
        )


def _write(traces: TraceSet, verdicts: DataFrame, out: Path) -> None:
    from flexgroup.pipeline.verify import evidence

    verdicts.coalesce(1).write.mode("overwrite").parquet(str(out / "verdicts"))
    evidence(traces, verdicts).coalesce(1).write.mode("overwrite").parquet(str(out / "evidence"))


def _outcomes(verdicts: DataFrame) -> dict[str, dict[str, int]]:
    """For each property, how many runs have each outcome."""
    from flexgroup.properties.catalogue import PROPERTIES

    found: dict[str, dict[str, int]] = {}
    for row in verdicts.groupBy("property", "outcome").count().collect():
        counts = found.setdefault(row.property, dict.fromkeys(("holds", "violated", "unknown"), 0))
        counts[row.outcome] = row["count"]
    return {name: found[name] for name in PROPERTIES if name in found}


def _as_json(row: Any) -> dict[str, object]:
    told: dict[str, object] = row.asDict()
    return told | {"witness": None if row.witness is None else json.loads(row.witness)}


def _show(verdicts: DataFrame, outcomes: Mapping[str, Mapping[str, int]], violated: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("runs in which")
    for outcome in ("holds", "violated", "unknown"):
        table.add_column(outcome, justify="right")
    for name, counts in outcomes.items():
        table.add_row(name, *(str(counts[outcome] or "") for outcome in counts))
    Console().print(table)
    _print_verdicts(verdicts.where("outcome = 'violated'"), violated)
    unknown = sum(counts["unknown"] for counts in outcomes.values())
    _print_verdicts(verdicts.where("outcome = 'unknown'"), unknown)


def _print_verdicts(verdicts: DataFrame, total: int) -> None:
    rows: Iterable[Any] = verdicts.orderBy("run", "property").limit(SHOWN).collect()
    for row in rows:
        lines = [f"{row.property}: {row.outcome}", *row.explanation.splitlines()]
        print(f"run {row.run}\n  " + "\n    ".join(lines))
    if total > SHOWN:
        print(f"and {total - SHOWN} more; --json or --out has them all")
