"""Measures in the tables of a page: which are shown, and as what, with confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flexgroup.metrics.catalogue import HALF_WIDTH, METRICS, Metric
from flexgroup.report.axes import figure, interval
from flexgroup.report.tables import Cell

SHOWN = tuple(
    METRICS[name]
    for name in (
        "throughput",
        "latency_last_mean",
        "latency_last_p95",
        "latency_last_p99",
        "steps",
        "volume",
        "header_bytes",
        "genuine",
        "fast",
        "busy",
        "unanswered",
    )
)
"""The metrics that the page shows; the tables have more."""


def value_of(metric: Metric, row: Mapping[str, Any]) -> float | None:
    """Return the value of a metric in a row of a table, in the unit that is shown."""
    return metric.shown(row.get(metric.name))


def half_width_of(metric: Metric, row: Mapping[str, Any]) -> float:
    """Return half the width of its confidence interval, 0 if there is none."""
    return metric.shown(row.get(metric.name + HALF_WIDTH)) or 0.0


def metric_cell(metric: Metric, row: Mapping[str, Any]) -> Cell:
    """Return the cell of a metric in a table."""
    value, half = value_of(metric, row), half_width_of(metric, row)
    if value is None:
        return Cell("")
    return Cell(interval(value, half) if half else figure(value), value)
