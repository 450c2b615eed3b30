"""What was measured: means over repetitions, and every run."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from flexgroup.diagram.markup import Markup, element, join
from flexgroup.metrics.catalogue import HEADLINES, METRICS, TOLD_APART, WHICH
from flexgroup.report.contents import Contents
from flexgroup.report.tables import Cell, Column, metric_cell, more_in, table, value_of

SHOWN = tuple(
    METRICS[name]
    for name in (
        *HEADLINES,
        "latency_last_p95",
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
        "busy",
        "unanswered",
    )
)
"""The metrics that the page shows; the tables have more."""

MOST_ROWS = 400

POINT = ("stack", "workload", "processes", "clients", "network")
NUMBERS = frozenset({"processes", "clients", "seed", "runs"})


def measures_markup(contents: Contents) -> Markup:
    parts = []
    points, measures = contents.points, contents.measures
    if points is not None and points.num_rows:
        repeated = "runs" in points.column_names and any(
            runs > 1 for runs in points["runs"].to_pylist()
        )
        caption = (
            "Means over repetitions, ± half the width of the 95% confidence interval"
            if repeated
            else "One run each"
        )
        parts.append(_measures(caption, ("run", *POINT, "runs"), points, "points"))
    if measures is not None and measures.num_rows:
        whole = _measures("Every run", ("run", *POINT, "seed"), measures, "measures")
        summary = f"Run by run: {measures.num_rows}"
        parts.append(element("details", element("summary", summary), whole) if parts else whole)
    if not parts:
        return element("p", "Nothing was measured.", class_="quiet")
    parts.append(element("p", f"{WHICH[0].upper()}{WHICH[1:]}.", class_="quiet small"))
    return join(parts)


def _measures(caption: str, keys: Sequence[str], measured: pa.Table, name: str) -> Markup:
    rows = measured.slice(0, MOST_ROWS).to_pylist()
    keys = [key for key in keys if any(row.get(key) is not None for row in rows)]
    hidden = frozenset() if any(row.get("groups") for row in rows) else TOLD_APART
    metrics = [
        each
        for each in SHOWN
        if each.name not in hidden and any(value_of(each, row) is not None for row in rows)
    ]
    columns = [Column(key, "number" if key in NUMBERS else "nowrap") for key in keys]
    columns += [Column(each.heading, "number") for each in metrics]
    body = [
        [
            *(Cell(row[key], row[key]) if key in NUMBERS else row[key] for key in keys),
            *(metric_cell(each, row) for each in metrics),
        ]
        for row in rows
    ]
    return table(caption + more_in(name, rows, measured), columns, body)
