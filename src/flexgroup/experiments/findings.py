"""What was measured and verified, as claims and figures ask it: by stack, workload and clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from flexgroup.metrics.catalogue import HALF_WIDTH, PACKETS_OF_TYPE, find_metric
from flexgroup.trace.run import planned_crashes

PROCESSES = 16
NETWORK = "lan"

Key = tuple[str, str, int, int, str, str]
"""Stack, workload, processes, clients, network, and which processes crash, as `1,5`."""

KEY = ("stack", "workload", "processes", "clients", "network")
VIOLATED = "violated"

Judged = Mapping[tuple[str, str, str, str], int]
"""Numbers of runs, by stack, network, which processes crash, and property."""


@dataclass(frozen=True)
class Point:
    """One point of a curve: what its runs have in common, and the means over the repetitions."""

    processes: int
    clients: int
    crashed: int
    throughput: float
    """Messages per second."""
    latency: float
    """Milliseconds until the last destination delivers; nan if no message was answered."""
    genuine: float
    fast: float
    steps: float
    volume: float
    header_bytes: float
    busy: float
    """The share of the time that the processes work, on average over them."""
    unanswered: float
    packets: Mapping[str, float] = field(default_factory=dict)
    """How many packets of each type processes sent in a run."""

    def shown(self, metric: str) -> float:
        """Return the value of a metric or a condition, in the unit that is shown."""
        if metric == "latency":
            return self.latency
        if metric.startswith(PACKETS_OF_TYPE):
            return self.packets.get(metric.removeprefix(PACKETS_OF_TYPE), 0.0)
        value: float = getattr(self, metric)
        return value * find_metric(metric).unit.factor


@dataclass(frozen=True)
class Findings:
    """The points of an experiment, and in how many runs of a stack each property is violated."""

    points: Mapping[Key, Point]
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
                (row["stack"], row["network"], planned_crashes(row["faults"]), row["property"]),
                row["outcome"],
            )
            for row in verdicts
        ]
        return cls(
            {_key(row): _point(row) for row in points},
            Counter(key for key, _ in told),
            Counter(key for key, outcome in told if outcome == VIOLATED),
        )

    def on(self, network: str) -> Findings:
        """Return the same, asked about another network."""
        return Findings(self.points, self.checked, self.violated, network)

    def at(
        self, stack: str, workload: str, clients: int, processes: int = PROCESSES, lost: str = ""
    ) -> Point:
        return self.points[stack, workload, processes, clients, self.network, lost]

    def curve(
        self,
        stack: str,
        workload: str,
        processes: int | None = PROCESSES,
        network: str | None = None,
        lost: str | None = "",
    ) -> list[Point]:
        """Return the points of a stack under a workload, as systems and loads and losses grow; None
        stands for all there are."""
        wanted = (stack, workload, processes, network or self.network, lost)
        curve = [
            point
            for (*what, size, _, where, crashed), point in self.points.items()
            if all(
                asked is None or asked == given
                for asked, given in zip(wanted, (*what, size, where, crashed), strict=True)
            )
        ]
        return sorted(curve, key=lambda point: (point.processes, point.clients, point.crashed))

    def peak(self, stack: str, workload: str) -> float:
        """Return the highest throughput on the curve."""
        return max(point.throughput for point in self.curve(stack, workload))

    def runs_checked(self, stack: str, name: str, lost: str | None = "") -> int:
        """Count the runs of the stack in which the property was checked."""
        return self._count(self.checked, stack, name, lost)

    def runs_violated(self, stack: str, name: str, lost: str | None = "") -> int:
        return self._count(self.violated, stack, name, lost)

    def _count(self, judged: Judged, stack: str, name: str, lost: str | None) -> int:
        return sum(
            count
            for (whose, where, crashed, what), count in judged.items()
            if (whose, where, what) == (stack, self.network, name) and lost in (None, crashed)
        )


def _key(row: Mapping[str, Any]) -> Key:
    stack, workload, processes, clients, network = (row[name] for name in KEY)
    return stack, workload, processes, clients, network, planned_crashes(row["faults"])


def _point(row: Mapping[str, Any]) -> Point:
    latency = find_metric("latency")
    shown = latency.shown(row[latency.name])
    return Point(
        processes=row["processes"],
        clients=row["clients"],
        crashed=int(row["crashed"]),
        latency=float("nan") if shown is None else shown,
        **{
            name: row[name]
            for name in (
                *("throughput", "genuine", "fast", "steps", "volume"),
                *("header_bytes", "busy", "unanswered"),
            )
        },
        packets={
            name.removeprefix(PACKETS_OF_TYPE): value
            for name, value in row.items()
            if name.startswith(PACKETS_OF_TYPE) and not name.endswith(HALF_WIDTH)
        },
    )
