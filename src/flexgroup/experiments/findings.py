"""What was measured and verified, as claims and figures ask it: by stack, workload and clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

PROCESSES = 16
NETWORK = "lan"

Key = tuple[str, str, int, int, str]
"""Stack, workload, processes, clients and network: the columns in KEY."""

KEY = ("stack", "workload", "processes", "clients", "network")
VIOLATED = "violated"
MILLISECONDS = 1000


@dataclass(frozen=True)
class Point:
    """One point of a curve: the means over the repetitions."""

    throughput: float
    """Messages per second."""
    latency: float
    """Milliseconds until the last destination delivers."""
    genuine: float
    fast: float
    steps: float
    volume: float
    header_bytes: float
    busy: float
    """The share of the time that the processes work, on average over them."""


@dataclass(frozen=True)
class Findings:
    """The points of an experiment, and in how many runs of a stack each property is violated."""

    points: Mapping[Key, Point]
    checked: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """By stack and property, how many runs were checked."""
    violated: Mapping[tuple[str, str], int] = field(default_factory=dict)
    network: str = NETWORK
    """The network that is meant where none is named."""

    @classmethod
    def of_tables(
        cls, points: Iterable[Mapping[str, Any]], verdicts: Iterable[Mapping[str, Any]]
    ) -> Findings:
        """From the rows of `points`, and of `verdicts` with the stack of each run."""
        told = [(row["stack"], row["property"], row["outcome"]) for row in verdicts]
        return cls(
            {_key(row): _point(row) for row in points},
            Counter((stack, name) for stack, name, _ in told),
            Counter((stack, name) for stack, name, outcome in told if outcome == VIOLATED),
        )

    def on(self, network: str) -> Findings:
        """The same, asked about another network."""
        return Findings(self.points, self.checked, self.violated, network)

    def at(self, stack: str, workload: str, clients: int, processes: int = PROCESSES) -> Point:
        return self.points[stack, workload, processes, clients, self.network]

    def curve(
        self, stack: str, workload: str, processes: int = PROCESSES, network: str | None = None
    ) -> list[tuple[int, Point]]:
        """The points under growing load, each with its number of clients."""
        wanted = (stack, workload, processes, network or self.network)
        curve = [
            (clients, point)
            for (*others, clients, where), point in self.points.items()
            if (*others, where) == wanted
        ]
        return sorted(curve, key=lambda pair: pair[0])

    def peak(self, stack: str, workload: str) -> float:
        """The highest throughput on the curve."""
        return max(point.throughput for _, point in self.curve(stack, workload))


def _key(row: Mapping[str, Any]) -> Key:
    stack, workload, processes, clients, network = (row[name] for name in KEY)
    return stack, workload, processes, clients, network


def _point(row: Mapping[str, Any]) -> Point:
    return Point(
        row["throughput"],
        row["latency_last_mean"] * MILLISECONDS,
        row["genuine"],
        row["fast"],
        row["steps"],
        row["volume"],
        row["header_bytes"],
        row["busy"],
    )
