"""What a figure or a table shows, as data: which points of which runs, and what the paper says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from flexgroup.core.errors import UsageError
from flexgroup.metrics.catalogue import CONDITIONS
from flexgroup.trace.run import planned_crashes, planned_liars

Row = Mapping[str, Any]


class Kind(StrEnum):
    CURVES = "curves"
    """A curve for each series, with a point for each number of clients or, if another condition is
    shown across, for each value of that."""
    BARS = "bars"
    """One bar a series at the most clients, grouped by workload unless series say otherwise."""
    TABLE = "table"
    """One row a series at the most clients, one column a metric."""


@dataclass(frozen=True)
class Series:
    """A stack under a workload, in a system of some size; None stands for any."""

    label: str
    stack: str
    workload: str | None
    processes: int | None = 16
    network: str | None = "lan"
    lost: str | None = ""
    """Which processes crash, as `1,5`."""
    liars: str | None = ""
    """Which processes lie, and how, as `0:silent 4:silent`."""
    under: str | None = ""
    """What a bar of the series stands under; the workload, if nothing is said."""

    def describes(self, row: Row) -> bool:
        """Tell whether a point of the table `points` belongs to the series."""
        faults = row.get("faults")
        if self.lost is not None and self.lost != planned_crashes(faults):
            return False
        if self.liars is not None and self.liars != " ".join(planned_liars(faults)):
            return False
        plain = ("stack", "workload", "processes", "network")
        return all(getattr(self, name) in (None, row.get(name)) for name in plain)

    @property
    def group(self) -> str:
        """Return what its bars stand under, beside those of other series."""
        return self.under or self.workload or "all workloads"


@dataclass(frozen=True)
class Figure:
    """A figure or a table of a paper, and what its text says about it, in our words."""

    id: str
    title: str
    kind: Kind
    series: tuple[Series, ...]
    metrics: tuple[str, ...]
    """What curves show across and up, what bars show, and what the columns of a table are."""
    section: str = ""
    paper: str = ""

    @property
    def image(self) -> str | None:
        """The file it is drawn into; a table is not drawn."""
        return None if self.kind is Kind.TABLE else f"figures/{self.id}.svg"

    @property
    def varied(self) -> str:
        """The condition in which the points of a curve differ."""
        return self.metrics[0] if self.metrics[0] in CONDITIONS else "clients"

    def points_of(self, series: Series, points: Iterable[Row]) -> list[Row]:
        """Return the points of one series as the condition grows: all, or the last."""
        curve = sorted(filter(series.describes, points), key=lambda row: row.get(self.varied) or 0)
        return curve if self.kind is Kind.CURVES else curve[-1:]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "image": self.image}

    @classmethod
    def from_json(cls, told: Row) -> Figure:
        """Return the figure that an entry of experiment.json describes."""
        try:
            id_, title, kind = (str(told[name]) for name in ("id", "title", "kind"))
            series = tuple(_series(each) for each in told["series"])
            metrics = tuple(str(name) for name in told["metrics"])
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"experiment.json describes a figure without {error}; a figure has id, title, "
                "kind, series and metrics: see docs/report.md"
            ) from None
        if kind not in list(Kind) or len(metrics) < (2 if kind == Kind.CURVES else 1):
            raise UsageError(
                f"experiment.json: figure '{id_}' is of kind '{kind}' with {len(metrics)} "
                "metrics; it must be curves (two metrics), bars or table"
            )
        paper = (str(told.get(name) or "") for name in ("section", "paper"))
        return cls(id_, title, Kind(kind), series, metrics, *paper)


def _series(told: Row) -> Series:
    stack = str(told["stack"])
    others = ("workload", "processes", "network", "lost", "liars", "under")
    where = (told.get(name) for name in others)
    return Series(str(told.get("label") or stack), stack, *where)
