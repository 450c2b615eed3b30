"""What a figure or a table shows, as data: which points of which runs, and what the paper says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from flexgroup.experiments.findings import Findings, Point
from flexgroup.metrics.catalogue import CONDITIONS

NAMES = {
    "skeen": "Skeen",
    "df": "D&F",
    "dcc": "DCC",
    "dcc/rv": "DCC/RV",
    "dcc-published": "DCC as published",
    "vcube-atomic": "hierarchical",
    "vcube-atomic-published": "hierarchical, as published",
    "all2all-atomic": "All2All",
}
"""Stacks as the papers call them; others go by their own name."""


class Kind(Enum):
    CURVES = "curves"
    """A curve for each series, with a point for each number of clients or, if another condition is
    shown across, for each value of that."""
    BARS = "bars"
    """One bar a series at the most clients, grouped by workload."""
    TABLE = "table"
    """One row a series at the most clients, one column a metric."""


@dataclass(frozen=True)
class Series:
    """A stack under a workload, in a system of some size."""

    label: str
    stack: str
    workload: str
    processes: int | None = 16
    """How many processes the system has; None stands for all sizes."""
    network: str = "lan"
    lost: str | None = ""
    """Which processes crash, as `1,5`; None for any."""


@dataclass(frozen=True)
class Figure:
    """A figure or a table of a paper, and what its text says about it, in our words."""

    id: str
    title: str
    kind: Kind
    series: tuple[Series, ...]
    metrics: tuple[str, ...]
    """What curves show across and up, what bars show, and what the columns of a table are."""
    section: str
    paper: str

    @property
    def image(self) -> str | None:
        """The file it is drawn into; a table is not drawn."""
        if self.kind is Kind.TABLE:
            return None
        return f"figures/{self.id}.svg"

    @property
    def varied(self) -> str:
        """The condition in which the points of a curve differ."""
        return self.metrics[0] if self.metrics[0] in CONDITIONS else "clients"

    def points_of(self, series: Series, findings: Findings) -> list[Point]:
        """Return the points of one series as the condition grows: all, or the last."""
        curve = findings.curve(
            series.stack, series.workload, series.processes, series.network, series.lost
        )
        return curve if self.kind is Kind.CURVES else curve[-1:]


def name_of(stack: str) -> str:
    return NAMES.get(stack, stack)


def compared(stacks: tuple[str, ...], *workloads: str) -> tuple[Series, ...]:
    """Return each stack under each workload."""
    return tuple(
        Series(name_of(stack), stack, workload) for workload in workloads for stack in stacks
    )
