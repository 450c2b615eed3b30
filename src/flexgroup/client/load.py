"""Closed loops: senders that each wait for their own message to come back before the next.

Used by `flexgroup bench`, and by the programs of the systems that are measured beside it, so that
all are loaded and timed in the same way. What is sent says whose it is and when it was sent; the
loops of one process share one connection.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import Any

TAG = Struct(">HHq")
"""The member, its loop, and when that sent the message, in nanoseconds of the monotonic clock,
which all processes of a machine share."""

SMALLEST_PAYLOAD = TAG.size
MICROSECOND = 1_000
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Load:
    """What closed loops saw between two moments."""

    seconds: float = 0.0
    completed: int = 0
    """Messages that came back to their senders."""
    delivered: int = 0
    """Deliveries, of all messages at all members."""
    latencies: Counter[int] = field(default_factory=Counter)
    """How many messages took so many microseconds."""
    cpu: float = 0.0
    """Seconds of processor time that all processes took, servers and members; 0: not known."""

    @property
    def throughput(self) -> float:
        """Messages a second, each counted once, however many members it goes to."""
        return self.completed / self.seconds if self.seconds else 0.0

    def percentile(self, share: float) -> float:
        """The latency, in milliseconds, that this share of the messages did not exceed."""
        wanted = share * self.completed
        seen = 0
        for microseconds in sorted(self.latencies):
            seen += self.latencies[microseconds]
            if seen >= wanted:
                return microseconds / 1_000
        return 0.0

    def add(self, other: Load) -> None:
        """What another process saw in the same time."""
        self.seconds = max(self.seconds, other.seconds)
        self.completed += other.completed
        self.delivered += other.delivered
        self.latencies += other.latencies
        self.cpu += other.cpu

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Load:
        latencies = Counter({int(key): count for key, count in document["latencies"].items()})
        return cls(**{**document, "latencies": latencies})


class ClosedLoops:
    """The loops of one member. Told of every delivery; says what to send next."""

    __slots__ = ("_begin", "_end", "_filling", "_loops", "_member", "load")

    def __init__(self, member: int, loops: int, payload: int) -> None:
        self._member = member
        self._loops = loops
        self._filling = bytes(payload - TAG.size)
        self._begin = self._end = 0
        self.load = Load()

    def begin(self, begin: float, end: float) -> list[bytes]:
        """The first messages; what comes back between the two monotonic times is counted."""
        self._begin, self._end = int(begin * 1e9), int(end * 1e9)
        self.load.seconds = end - begin
        now = time.monotonic_ns()
        return [self._message(loop, now) for loop in range(self._loops)]

    def delivered(self, body: bytes) -> bytes | None:
        """What to send next, if it was a message of ours and time is not over."""
        member, loop, sent = TAG.unpack_from(body)
        now = time.monotonic_ns()
        counted = self._begin <= now < self._end
        self.load.delivered += counted
        if member != self._member:
            return None
        if counted:
            self.load.completed += 1
            self.load.latencies[(now - sent) // MICROSECOND] += 1
        return self._message(loop, now) if now < self._end else None

    def _message(self, loop: int, now: int) -> bytes:
        return TAG.pack(self._member, loop, now) + self._filling


def cpu_seconds(pids: Iterable[int]) -> float:
    """The processor time of processes so far; 0 where the system has no /proc."""
    total = 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        # The second field is the program's name, which may hold anything but ends with ')'.
        fields = text.rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / CLOCK_TICKS


def share_of(clients: int, members: int, member: int) -> int:
    """How many of the loops are at this member, when they are spread evenly."""
    return clients // members + (member < clients % members)
