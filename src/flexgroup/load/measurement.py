"""What a measurement counts, and the figures that it comes to."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Load:
    """What closed loops saw between two moments, and what that cost."""

    seconds: float = 0.0
    completed: int = 0
    """How many messages came back to their senders."""
    delivered: int = 0
    """How many deliveries there were, of all messages at all members."""
    latencies: Counter[int] = field(default_factory=Counter)
    """How many messages took so many microseconds."""
    server_cpu: float = 0.0
    """Seconds of processor time that the servers took; 0 where it is not known."""
    member_cpu: float = 0.0
    """Seconds of processor time that the member processes took."""

    def add(self, other: Load) -> None:
        """Add what another process saw in the same time."""
        self.seconds = max(self.seconds, other.seconds)
        self.completed += other.completed
        self.delivered += other.delivered
        self.latencies += other.latencies
        self.server_cpu += other.server_cpu
        self.member_cpu += other.member_cpu

    def percentile(self, share: float) -> float:
        """Return the latency, in milliseconds, that this share of the messages did not exceed."""
        wanted = share * self.completed
        seen = 0
        for microseconds in sorted(self.latencies):
            seen += self.latencies[microseconds]
            if seen >= wanted:
                return microseconds / 1_000
        return 0.0

    def counts(self) -> dict[str, Any]:
        """Return all but the latencies, as a JSON object."""
        return {name: value for name, value in vars(self).items() if name != "latencies"}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Load:
        latencies = Counter({int(key): count for key, count in document["latencies"].items()})
        return cls(**{**document, "latencies": latencies})

    def summary(self) -> Summary:
        messages = max(1, self.completed)
        total = sum(latency * count for latency, count in self.latencies.items())
        seconds = self.seconds or 1.0
        return Summary(
            seconds=self.seconds,
            messages_a_second=self.completed / seconds,
            deliveries_a_second=self.delivered / seconds,
            mean_ms=total / messages / 1_000,
            p50_ms=self.percentile(0.5),
            p90_ms=self.percentile(0.9),
            p99_ms=self.percentile(0.99),
            p999_ms=self.percentile(0.999),
            max_ms=max(self.latencies, default=0) / 1_000,
            server_cpu_us=self.server_cpu / messages * 1e6,
            member_cpu_us=self.member_cpu / messages * 1e6,
        )


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The figures of a measurement."""

    seconds: float
    messages_a_second: float
    """Each message counts once, however many members it goes to."""
    deliveries_a_second: float
    mean_ms: float
    """The latency is the time from sending a message until it comes back to its sender."""
    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float
    server_cpu_us: float
    """The processor time that a message took at all servers together."""
    member_cpu_us: float
    """The processor time that a message took in all member processes together."""

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Summary:
        """Read the figures from a document that may say more, such as that of the command."""
        return cls(**{each.name: document[each.name] for each in fields(cls)})


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the processor time of processes so far, or 0 where the system has no /proc."""
    total = 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        # The second field is the program's name, which may hold anything but ends with ')'.
        values = text.rpartition(")")[2].split()
        total += int(values[11]) + int(values[12])
    return total / CLOCK_TICKS
