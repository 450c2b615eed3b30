"""Closed loops: senders that each wait for their own message to come back before the next.

Used by `flexgroup bench`, and by the programs of the systems that are measured beside it, so that
all are loaded and timed in the same way. What is sent says whose it is and when it was sent; the
loops of one process share one connection.
"""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from time import monotonic_ns
from typing import Any, Final, final

TAG = Struct("=HHq")
"""The member, its loop, and when that sent the message, in nanoseconds of the monotonic clock,
which all processes of a machine share."""

TIME = Struct("=q")
MEMBER_BYTES: Final = 2
LOOP_BYTES: Final = 4
TAG_BYTES: Final = 12
SMALLEST_PAYLOAD = TAG.size
MICROSECOND: Final = 1_000
MOST_LATENCIES = 1 << 16
"""That are kept one by one."""

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
        return {
            "seconds": self.seconds,
            "completed": self.completed,
            "delivered": self.delivered,
            "latencies": self.latencies,
            "cpu": self.cpu,
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Load:
        latencies = Counter({int(key): count for key, count in document["latencies"].items()})
        return cls(**{**document, "latencies": latencies})


@final
class ClosedLoops:
    """The loops of one member. Told of every delivery; says what to send next."""

    __slots__ = (
        "_begin",
        "_delivered",
        "_end",
        "_filling",
        "_latencies",
        "_load",
        "_loops",
        "_member",
        "_member_in_tag",
    )

    def __init__(self, member: int, loops: int, payload: int) -> None:
        self._member = member
        self._member_in_tag = TAG.pack(member, 0, 0)[:MEMBER_BYTES]
        self._loops = loops
        self._filling = bytes(payload - TAG.size)
        self._begin = self._end = 0
        self._load = Load()
        # Summed up later: what is done for every message weighs on what is measured.
        self._delivered = 0
        self._latencies: list[int] = []

    @property
    def load(self) -> Load:
        """What was seen so far."""
        self._sum_up()
        return self._load

    def begin(self, begin: float, end: float) -> list[bytes]:
        """The first messages; what comes back between the two monotonic times is counted."""
        self._begin, self._end = int(begin * 1e9), int(end * 1e9)
        self._load.seconds = end - begin
        now = monotonic_ns()
        return [self._message(loop, now) for loop in range(self._loops)]

    def delivered(self, bodies: list[bytes]) -> list[bytes]:
        """What to send next: an answer to each that is ours, unless time is over."""
        now = monotonic_ns()
        if now >= self._end:
            return []
        ours = self._member_in_tag
        answers: list[bytes] = []
        times: list[bytes] = []
        rest = TIME.pack(now) + self._filling
        for body in bodies:
            if body[:MEMBER_BYTES] == ours:
                answers.append(body[:LOOP_BYTES] + rest)
                times.append(body[LOOP_BYTES:TAG_BYTES])
        if now >= self._begin:
            self._delivered += len(bodies)
            self._count(now, times)
        return answers

    def _count(self, now: int, times: list[bytes]) -> None:
        latencies = self._latencies
        for sent in array("q", b"".join(times)):
            latencies.append((now - sent) // MICROSECOND)
        if len(latencies) >= MOST_LATENCIES:
            self._sum_up()

    def _message(self, loop: int, now: int) -> bytes:
        return TAG.pack(self._member, loop, now) + self._filling

    def _sum_up(self) -> None:
        load = self._load
        load.delivered = self._delivered
        load.completed += len(self._latencies)
        load.latencies.update(self._latencies)
        self._latencies.clear()


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
