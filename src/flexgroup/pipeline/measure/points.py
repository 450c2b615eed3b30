"""Means over repetitions, with confidence intervals; from one row for each run."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from typing import Any

import pyarrow as pa

from flexgroup.metrics.confidence import student_95
from flexgroup.pipeline.measure.metrics import METRICS, POINT
from flexgroup.pipeline.measure.sums import PROCESS
from flexgroup.trace import schema

HALF_WIDTH = "_ci95"

OF_TYPE = "packets_"
"""Before the name of a type of packets: a column with how many of them processes sent."""


def points(measures: pa.Table, metrics: Sequence[str] = METRICS) -> pa.Table:
    """One row for each point: what its runs have in common, how many there are, how many of them
    were cut, and of each metric the mean and, as `..._ci95`, half the width of the 95% confidence
    interval (null for a single run)."""
    repeated: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for run in measures.to_pylist():
        repeated.setdefault(tuple(run[name] for name in POINT), []).append(run)
    rows = []
    for common, runs in repeated.items():
        row = dict(zip(POINT, common, strict=True))
        row["runs"] = len(runs)
        row["cut_runs"] = sum(run["outcome"] == schema.CUT for run in runs)
        for name in metrics:
            values = [float(run[name]) for run in runs if run[name] is not None]
            row[name], row[name + HALF_WIDTH] = interval(values)
        rows.append(row)
    columns = [
        *(measures.schema.field(name) for name in POINT),
        pa.field("runs", pa.int64()),
        pa.field("cut_runs", pa.int64()),
        *(pa.field(name + end, pa.float64()) for name in metrics for end in ("", HALF_WIDTH)),
    ]
    return pa.Table.from_pylist(rows, pa.schema(columns))


def interval(values: Sequence[float]) -> tuple[float | None, float | None]:
    """The mean, and half the width of its 95% confidence interval."""
    count = len(values)
    if count == 0:
        return None, None
    mean = fsum(values) / count
    if count == 1:
        return mean, None
    deviation = sqrt(fsum((value - mean) ** 2 for value in values) / (count - 1))
    return mean, student_95(count - 1) * deviation / sqrt(count)


def with_packet_types(measures: pa.Table, packets: pa.Table) -> pa.Table:
    """The measures with a column more for each type of packets that processes sent in any run."""
    sent: dict[str, dict[str, int]] = {}
    for row in packets.to_pylist():
        if row["sender"] == PROCESS and row["packet"] is not None:
            sent.setdefault(row["packet"], {})[row["run"]] = row["packets"]
    runs = measures["run"].to_pylist()
    for packet in sorted(sent):
        counts = pa.array([sent[packet].get(run, 0) for run in runs], pa.int64())
        measures = measures.append_column(OF_TYPE + packet, counts)
    return measures
