"""The tables of docs/measures.md: a row for each run, and a row for each set of repetitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from flexgroup.metrics.catalogue import HALF_WIDTH, METRICS, PACKETS_OF_TYPE, evaluate
from flexgroup.metrics.confidence import interval
from flexgroup.metrics.sums import PROCESS
from flexgroup.trace import schema
from flexgroup.trace.run import Run

POINT = (
    "world",
    "stack",
    "options",
    "processes",
    "clients",
    "groups",
    "workload",
    "network",
    "faults",
    "software",
)
"""The columns in which repetitions of a run agree."""

MEASURES = pa.schema(
    [
        *(
            schema.RUN_COLUMNS.field(name).with_nullable(True)
            for name in ("run", *POINT, "seed", "outcome")
        ),
        *(
            (metric.name, pa.int64() if metric.is_count else pa.float64())
            for metric in METRICS.values()
        ),
    ]
)


def measures(described: Iterable[Run], sums: Mapping[str, Mapping[str, Any]]) -> pa.Table:
    """Return a row for each run: what describes it, and its metrics, from the sums by run."""
    rows = [{**asdict(run), **evaluate(run, sums[run.run])} for run in described]
    return pa.Table.from_pylist(rows, MEASURES)


def points(measures: pa.Table, metrics: Iterable[str] = METRICS) -> pa.Table:
    """Return a row for each point: what its runs have in common, how many there are, how many of
    them were cut, and for each metric the mean and, as `..._ci95`, half the width of the 95%
    confidence interval (null for a single run).

    A run without a seed repeats no other: it is a point of its own, which has its name.
    """
    metrics = list(metrics)
    repeated: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for run in measures.to_pylist():
        alone = run["run"] if run["seed"] is None else None
        repeated.setdefault((alone, *(run[name] for name in POINT)), []).append(run)
    rows = []
    for common, runs in repeated.items():
        row = dict(zip(("run", *POINT), common, strict=True))
        row["runs"] = len(runs)
        row["cut_runs"] = sum(run["outcome"] == schema.CUT for run in runs)
        for name in metrics:
            values = [float(run[name]) for run in runs if run[name] is not None]
            row[name], row[name + HALF_WIDTH] = interval(values)
        rows.append(row)
    columns = [
        *(measures.schema.field(name).with_nullable(True) for name in ("run", *POINT)),
        pa.field("runs", pa.int64()),
        pa.field("cut_runs", pa.int64()),
        *(pa.field(name + end, pa.float64()) for name in metrics for end in ("", HALF_WIDTH)),
    ]
    return pa.Table.from_pylist(rows, pa.schema(columns))


def with_packet_types(measures: pa.Table, packets: pa.Table) -> pa.Table:
    """Return the measures with one more column for each type of packets that processes sent in any
    run: how many of them."""
    sent: dict[str, dict[str, int]] = {}
    for row in packets.to_pylist():
        if row["sender"] == PROCESS and row["packet"] is not None:
            sent.setdefault(row["packet"], {})[row["run"]] = row["packets"]
    runs = measures["run"].to_pylist()
    for packet in sorted(sent):
        counts = pa.array([sent[packet].get(run, 0) for run in runs], pa.int64())
        measures = measures.append_column(PACKETS_OF_TYPE + packet, counts)
    return measures
