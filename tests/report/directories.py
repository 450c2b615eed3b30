"""Small directories to report on: simulated runs, and the tables that Spark would compute.

The tables are computed here in plain Python, so that most tests of the report need no Java.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from flexgroup.metrics.in_memory import metrics_of
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome, Verdict
from flexgroup.trace import schema
from flexgroup.trace.reader import load_history, read_events, read_run
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario

CHECKED = ("integrity", "validity", "pairwise order", "acyclic order")

GOOD = tuple(
    Scenario(stack, 4, clients, "random:2", "lan", duration=0.004, seed=seed)
    for stack in ("skeen", "df", "dcc")
    for clients in (1, 4, 16)
    for seed in (1, 2)
)
CIRCLE = Scenario(
    "dcc-published", 5, 16, "random:2", "lan:jitter=1ms", 0.02, 5, rate=500.0, drain=1.0
)
"""DCC as published delivers four messages in a circle."""

STUCK = Scenario(
    "dcc-published", 6, 16, "random:N", "lan:jitter=1ms", 0.02, 5, rate=500.0, drain=1.0
)
"""DCC as published leaves messages waiting for ever."""

OPPOSITE = Scenario("best-effort", 4, 6, "random:2", "lan", 0.01, 1)
"""Two processes deliver two messages in opposite orders, and nothing promised otherwise."""

DEFAULT = (*GOOD, CIRCLE, STUCK, OPPOSITE)

PAPER_SAYS = "The more destinations, the further DCC is ahead; D&F waits."

ABOUT: dict[str, Any] = {
    "name": "sample",
    "title": "Random destinations on a small system",
    "scale": "small",
    "software": "flexgroup 0.1.0",
    "source": "a paper of 2024, chapter 7",
    "figures": [
        {
            "id": "7.1a",
            "title": "Two random destinations",
            "kind": "curves",
            "metrics": ["throughput", "latency"],
            "section": "7.1",
            "paper": PAPER_SAYS,
            "series": [
                {"label": name, "stack": stack, "workload": "random:2", "processes": 4,
                 "network": "lan"}
                for name, stack in (("Skeen", "skeen"), ("D&F", "df"), ("DCC", "dcc"))
            ],
        },
        {
            "id": "7.5",
            "title": "Genuine messages",
            "kind": "bars",
            "metrics": ["genuine"],
            "section": "7.4",
            "paper": "Skeen and D&F are genuine.",
            "series": [
                {"label": name, "stack": stack, "workload": "random:2", "processes": 4}
                for name, stack in (("Skeen", "skeen"), ("D&F", "df"), ("DCC", "dcc"))
            ],
        },
        {
            "id": "table 7.1",
            "title": "Steps and packets",
            "kind": "table",
            "metrics": ["steps", "volume", "header_bytes"],
            "section": "7.4",
            "paper": "Skeen needs two steps.",
            "series": [{"label": "Skeen", "stack": "skeen", "workload": "random:2"}],
        },
    ],
}  # fmt: skip

CLAIMS = [
    {
        "claim": "genuine",
        "section": "7.4",
        "paper": "Skeen is genuine",
        "holds": True,
        "evidence": "Skeen 100%",
    },
    {
        "claim": "overtakes",
        "section": "7.1",
        "paper": "DCC overtakes Skeen with eight destinations",
        "holds": False,
        "evidence": "there are only four processes",
    },
]


MEASURED = ("throughput", "latency_last_mean", "steps", "volume", "header_bytes", "genuine", "fast")


def experiment(directory: Path, scenarios: Sequence[Scenario] = DEFAULT) -> Path:
    """An experiment's directory with traces, tables and a description."""
    write_tables(directory, record(directory / "traces", scenarios))
    write_table(directory, "claims", CLAIMS)
    (directory / "experiment.json").write_text(json.dumps(ABOUT), encoding="utf-8")
    return directory


def record(traces: Path, scenarios: Iterable[Scenario]) -> list[dict[str, Any]]:
    """Simulate; a row of measures for each run, with its verdicts and evidence beside."""
    found = []
    for scenario in scenarios:
        outcome = record_scenario(scenario, traces)
        run = read_run(traces, outcome.run)
        history = load_history(traces, run)
        verdicts = check(history, CHECKED)
        metrics = metrics_of(run, history)
        measures = {
            **{name: getattr(run, name) for name in schema.RUN_COLUMNS.names},
            **{name: metrics[name] for name in MEASURED},
        }
        evidence = [row for verdict in verdicts for row in evidence_of(traces, run.run, verdict)]
        found.append({"measures": measures, "verdicts": verdicts, "evidence": evidence})
    return found


def evidence_of(traces: Path, run: str, verdict: Verdict) -> list[dict[str, Any]]:
    if verdict.outcome is not Outcome.VIOLATED or verdict.witness is None:
        return []
    messages = {str(step.to_json()["message"]) for step in verdict.witness}
    return [
        {**row, "run": run, "property": verdict.property, "event": kind}
        for kind in (schema.MULTICAST, schema.SEND, schema.RECEIVE, schema.DELIVER)
        for row in read_events(traces, run, kind).to_pylist()
        if f"{row['origin']}.{row['seq']}" in messages
    ]


EVIDENCE = pa.schema(
    [pa.field("property", pa.string()), pa.field("event", pa.string()), *schema.EVENT_COLUMNS]
)


def write_tables(directory: Path, found: Sequence[dict[str, Any]]) -> None:
    """With a description, so that nobody compares them with the traces."""
    (directory / "experiment.json").write_text("{}", encoding="utf-8")
    measures = [each["measures"] for each in found]
    write_table(directory, "measures", measures)
    write_table(directory, "points", points(measures))
    write_table(
        directory,
        "verdicts",
        [verdict_row(each["measures"]["run"], v) for each in found for v in each["verdicts"]],
    )
    evidence = [row for each in found for row in each["evidence"]]
    write_table(directory, "evidence", evidence, EVIDENCE)


def verdict_row(run: str, verdict: Verdict) -> dict[str, Any]:
    told = verdict.to_json()
    return {**told, "run": run, "witness": told["witness"] and json.dumps(told["witness"])}


def points(measures: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over the seeds; half-widths are rough, as long as there are some."""
    keys = ("stack", "workload", "processes", "clients", "network")
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in measures:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    rows = []
    for key, runs in groups.items():
        row = dict(zip(keys, key, strict=True)) | {"runs": len(runs)}
        for name in MEASURED[:-1]:
            values = [float(run[name]) for run in runs]
            row[name] = mean(values)
            row[f"{name}_ci95"] = 2 * stdev(values) if len(values) > 1 else None
        rows.append(row)
    return rows


def write_table(
    directory: Path, name: str, rows: list[dict[str, Any]], columns: pa.Schema | None = None
) -> None:
    folder = directory / "tables" / name
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, columns), folder / f"{name}.parquet")
