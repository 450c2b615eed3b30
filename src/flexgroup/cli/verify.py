"""`flexgroup verify`: did every run of a trace set keep its promises? On Spark."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flexgroup.cli.arguments import Command, Option, print_json
from flexgroup.cli.spark_commands import (
    ENGINE_OPTION,
    PROPERTIES_OPTION,
    master_option,
    tables_options,
    trace_job,
    traces_argument,
)
from flexgroup.core.errors import UsageError
from flexgroup.properties.verdict import Outcome

if TYPE_CHECKING:
    import pyarrow as pa

    from flexgroup.pipeline.reading.local_files import LocalFiles
    from flexgroup.pipeline.reading.trace_set import TraceSet

    Verdict = Mapping[str, Any]

TABLES = ("verdicts", "evidence")

SHOWN = 10
"""How many verdicts of one outcome are printed in full, at most."""


COMMAND = Command(
    "verify",
    "check the properties of every run of a trace set, on Spark or here",
    "flexgroup verify runs/first",
    (
        traces_argument(),
        master_option(),
        ENGINE_OPTION,
        PROPERTIES_OPTION,
        Option(
            "--check", choices=("promised", "all"), default="promised",
            help="what each run's stack promises, or every property (promised)",
        ),
        *tables_options(TABLES),
    ),
)  # fmt: skip


def run(options: argparse.Namespace) -> int:
    chosen = _chosen(options)
    with trace_job(options, "verify", "verifying", TABLES) as job:
        from flexgroup.pipeline.result_tables import in_order

        table = in_order(_verdicts(job.traces, chosen), "run", "property")
        verdicts = table.to_pylist()
        if options.out is not None:
            job.write({"verdicts": table, "evidence": _evidence(job.traces, verdicts)})
    if options.json:
        print_json({"verdicts": [_as_json(verdict) for verdict in verdicts], **job.to_json()})
    else:
        _show(verdicts)
        job.print_times("verifying")
    return 1 if any(verdict["outcome"] == Outcome.VIOLATED for verdict in verdicts) else 0


def _verdicts(traces: TraceSet | LocalFiles, properties: Sequence[str] | None) -> pa.Table:
    from flexgroup.pipeline.in_memory.verdicts import verify_here
    from flexgroup.pipeline.reading.local_files import LocalFiles

    if isinstance(traces, LocalFiles):
        return verify_here(traces, properties)
    from flexgroup.pipeline.verify import verify

    # A row for each run and property: the driver can hold them, and every further question to
    # Spark would take longer than the answer.
    return verify(traces, properties, refuse_mixed=True).toArrow()


def _evidence(traces: TraceSet | LocalFiles, verdicts: Sequence[Verdict]) -> pa.Table:
    from flexgroup.pipeline.in_memory.evidence import evidence_here
    from flexgroup.pipeline.reading.local_files import LocalFiles

    if isinstance(traces, LocalFiles):
        return evidence_here(traces, verdicts)
    from flexgroup.pipeline.verify import evidence

    return evidence(traces, verdicts)


def _chosen(options: argparse.Namespace) -> Sequence[str] | None:
    from flexgroup.core.promises import PROPERTIES
    from flexgroup.properties.catalogue import known_properties

    if options.properties and options.check == "all":
        raise UsageError("--property and --check all contradict each other; give one of them")
    if options.check == "all":
        return PROPERTIES
    return known_properties(options.properties) if options.properties else None


def _as_json(verdict: Verdict) -> dict[str, object]:
    witness = verdict["witness"]
    return {**verdict, "witness": None if witness is None else json.loads(witness)}


def _show(verdicts: Sequence[Verdict]) -> None:
    from rich.console import Console

    from flexgroup.cli.tables import table
    from flexgroup.properties.catalogue import PROPERTIES

    counts = Counter((verdict["property"], verdict["outcome"]) for verdict in verdicts)
    checked = {name for name, _ in counts}
    rows = [
        (name, *(counts[name, outcome] or "" for outcome in Outcome))
        for name in PROPERTIES
        if name in checked
    ]
    Console().print(table(("runs in which", *Outcome), rows, tuple(Outcome), pad_edge=False))
    for outcome in (Outcome.VIOLATED, Outcome.UNKNOWN):
        _print_verdicts([verdict for verdict in verdicts if verdict["outcome"] == outcome])


def _print_verdicts(verdicts: Sequence[Verdict]) -> None:
    for verdict in verdicts[:SHOWN]:
        explanation = verdict["explanation"].splitlines()
        lines = [f"{verdict['property']}: {verdict['outcome']}", *explanation]
        print(f"run {verdict['run']}\n  " + "\n    ".join(lines))
    if len(verdicts) > SHOWN:
        print(f"and {len(verdicts) - SHOWN} more; --json or --out has them all")
