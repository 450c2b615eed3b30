"""How measures are called and written: headings, units, digits, confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from flexgroup.report.axes import figure, interval
from flexgroup.report.tables import Cell

HALF_WIDTH = "_ci95"
"""Behind the name of a metric: half the width of its 95% confidence interval."""


@dataclass(frozen=True)
class Metric:
    column: str
    heading: str
    times: float = 1.0
    """From the unit of the table to the one that is shown."""

    def value(self, row: Mapping[str, Any]) -> float | None:
        return self._scaled(row.get(self.column))

    def half_width(self, row: Mapping[str, Any]) -> float:
        return self._scaled(row.get(self.column + HALF_WIDTH)) or 0.0

    def cell(self, row: Mapping[str, Any]) -> Cell:
        value, half = self.value(row), self.half_width(row)
        if value is None:
            return Cell("")
        return Cell(interval(value, half) if half else figure(value), value)

    def _scaled(self, value: Any) -> float | None:
        if not isinstance(value, int | float) or not isfinite(value):
            return None
        return value * self.times


SHOWN = (
    Metric("throughput", "throughput (messages/s)"),
    Metric("latency_last_mean", "mean latency (ms)", 1000),
    Metric("latency_last_p95", "95th percentile (ms)", 1000),
    Metric("latency_last_p99", "99th percentile (ms)", 1000),
    Metric("steps", "steps"),
    Metric("volume", "packets a message"),
    Metric("header_bytes", "header bytes a packet"),
    Metric("genuine", "genuine (%)", 100),
    Metric("fast", "fast (%)", 100),
    Metric("busy", "busy (%)", 100),
    Metric("unanswered", "unanswered"),
)
"""The measures that the page shows; the tables have more."""

CONDITIONS = (Metric("crashed", "processes that crash"),)

ALSO_KNOWN = {"latency": "latency_last_mean"}
"""Names in figures that are not those of columns."""


OF_TYPE = "packets_"
"""Before the name of a type of packets: how many of them were sent."""


def metric(name: str) -> Metric:
    column = ALSO_KNOWN.get(name, name)
    known = {each.column: each for each in (*SHOWN, *CONDITIONS)}
    if column.startswith(OF_TYPE):
        return Metric(column, f"{column.removeprefix(OF_TYPE)} packets")
    return known.get(column) or Metric(column, name.replace("_", " "))
