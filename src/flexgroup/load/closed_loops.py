"""Closed loops: senders that each wait for their own message to come back before the next.

`flexgroup bench` uses them, and so do the programs of the systems that are measured beside it:
all are loaded and timed in the same way. A message says whose it is and when it was sent; the
loops of one process share one connection.
"""

from __future__ import annotations

from array import array
from struct import Struct
from time import monotonic_ns
from typing import Final, final

from flexgroup.load.measurement import Load

TAG = Struct("=HHq")
"""The number of the member, that of its loop, and the time of sending in nanoseconds of the
monotonic clock, which all processes of a machine share."""

TIME = Struct("=q")
MEMBER_BYTES: Final = 2
LOOP_BYTES: Final = 4
TAG_BYTES: Final = 12
SMALLEST_PAYLOAD = TAG.size
MICROSECOND: Final = 1_000
MOST_LATENCIES = 1 << 16
"""How many latencies are kept one by one before they are counted."""


@final
class ClosedLoops:
    """The loops of one member: they are told of every delivery, and say what to send next."""

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
        """What the loops have seen so far."""
        self._sum_up()
        return self._load

    def begin(self, begin: float, end: float) -> list[bytes]:
        """Return the first messages; those count that come back between two monotonic times."""
        self._begin, self._end = int(begin * 1e9), int(end * 1e9)
        self._load.seconds = end - begin
        now = monotonic_ns()
        return [self._message(loop, now) for loop in range(self._loops)]

    def delivered(self, bodies: list[bytes]) -> list[bytes]:
        """Return what to send next: one message for each own one, unless the time is over."""
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


def share_of(clients: int, members: int, member: int) -> int:
    """Return how many of the loops are at this member, when they are spread evenly."""
    return clients // members + (member < clients % members)
