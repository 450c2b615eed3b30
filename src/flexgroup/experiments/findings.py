"""What was measured and verified, as claims ask it: by stack, workload and clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flexgroup.metrics.catalogue import find_metric
from flexgroup.properties.verdict import Outcome
from flexgroup.trace.run import planned_crashes, planned_liars

PROCESSES = 16
NETWORK = "lan"

Judged = Mapping[tuple[str, str, str, str, str], int]
"""Numbers of runs, by stack, network, which processes crash, which lie, and property."""


def listed(values: Iterable[float], form: str) -> str:
    """Write figures one after the other."""
    return ", ".join(format(value, form) for value in values)


@dataclass(frozen=True)
class Point:
    """One point of a curve: what its runs have in common, and the means over the repetitions."""

    stack: str
    workload: str
    processes: int
    clients: int
    network: str
    lost: str
    """Which processes crash, as `1,5`."""
    latency: float
    """Milliseconds until the last destination delivers; nan if no message was answered."""
    throughput: float
    """Messages per second."""
    genuine: float
    fast: float
    steps: float
    volume: float
    busy: float
    """The share of the time that the processes work, on average over them."""
    unanswered: float
    crashed: int
    liars: str = ""
    """Which processes lie, and how, as `0:silent 4:silent`."""
    row: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """All there is, as in the table `points`."""

    def shown(self, metric: str) -> float:
        """Return any metric in the unit in which it is shown; nan if it is unknown."""
        found = find_metric(metric)
        value = found.shown(self.row.get(found.name))
        return float("nan") if value is None else value

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Point:
        """Return the point of a row of the table `points`."""
        latency = find_metric("latency")
        shown = latency.shown(row[latency.name])
        known: dict[str, Any] = {
            "lost": planned_crashes(row["faults"]),
            "liars": " ".join(planned_liars(row["faults"])),
            "crashed": int(row["crashed"]),
            "latency": float("nan") if shown is None else shown,
            "row": row,
        }
        return cls(**known, **{name: row[name] for name in cls.__annotations__.keys() - known})


@dataclass(frozen=True)
class Findings:
    """The points of an experiment, and in how many runs of a stack each property is violated."""

    points: Sequence[Point]
    checked: Judged = field(default_factory=dict)
    """How many runs were checked."""
    violated: Judged = field(default_factory=dict)
    network: str = NETWORK
    """The network that is meant where none is named."""

    @classmethod
    def of_tables(
        cls, points: Iterable[Mapping[str, Any]], verdicts: Iterable[Mapping[str, Any]]
    ) -> Findings:
        """Gather the rows of `points`, and of `verdicts` with the description of each run."""
        told = [
            (
                (
                    row["stack"],
                    row["network"],
                    planned_crashes(row["faults"]),
                    " ".join(planned_liars(row["faults"])),
                    row["property"],
                ),
                row["outcome"],
            )
            for row in verdicts
        ]
        return cls(
            [Point.of_row(row) for row in points],
            Counter(key for key, _ in told),
            Counter(key for key, outcome in told if outcome == Outcome.VIOLATED),
        )

    def on(self, network: str) -> Findings:
        """Return the same, asked about another network."""
        return replace(self, network=network)

    def at(
        self, stack: str, workload: str, clients: int, processes: int = PROCESSES, lost: str = ""
    ) -> Point:
        curve = self.curve(stack, workload, processes, lost)
        (found,) = [point for point in curve if point.clients == clients]
        return found

    def curve(
        self,
        stack: str,
        workload: str,
        processes: int | None = PROCESSES,
        lost: str | None = "",
        liars: str | None = "",
    ) -> list[Point]:
        """Return the points of a stack under a workload, as systems and loads and losses grow; None
        stands for all there are."""
        curve = [
            point
            for point in self.points
            if (point.stack, point.workload, point.network) == (stack, workload, self.network)
            and processes in (None, point.processes)
            and lost in (None, point.lost)
            and liars in (None, point.liars)
        ]
        return sorted(curve, key=lambda point: (point.processes, point.clients, point.crashed))

    def peak(self, stack: str, workload: str) -> float:
        """Return the highest throughput on the curve."""
        return max(point.throughput for point in self.curve(stack, workload))

    def runs_checked(
        self, stack: str, name: str | None, lost: str | None = "", liars: str | None = ""
    ) -> int:
        """Count the runs of the stack in which the property was checked; of all properties, each
        run as often as it was checked for one."""
        return self._count(self.checked, stack, name, lost, liars)

    def runs_violated(
        self, stack: str, name: str | None, lost: str | None = "", liars: str | None = ""
    ) -> int:
        return self._count(self.violated, stack, name, lost, liars)

    def _count(
        self, judged: Judged, stack: str, name: str | None, lost: str | None, liars: str | None
    ) -> int:
        return sum(
            count
            for (whose, where, crashed, lying, what), count in judged.items()
            if (whose, where) == (stack, self.network)
            and name in (None, what)
            and lost in (None, crashed)
            and liars in (None, lying)
        )
