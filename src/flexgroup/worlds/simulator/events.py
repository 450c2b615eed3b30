"""What can happen in a simulation, and the queue that holds it in order of time."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final, final

from mypy_extensions import mypyc_attr

from flexgroup.core.layer import Notice
from flexgroup.core.message import Message, Packet

COMPILED: Final = not __file__.endswith(".py")


@mypyc_attr(allow_interpreted_subclasses=True)
class Cause:
    """What makes something happen at a process or a client."""

    __slots__ = ()


@final
class Event:
    """At this time, a cause reaches its target; ties are broken by the order of scheduling.

    Where the cause is a packet, `source` sent it at its step `sent`.
    """

    __slots__ = ("cause", "order", "sent", "source", "target", "time")

    def __init__(self, time: int, target: int, source: int, sent: int, cause: Cause) -> None:
        self.time = time
        self.order = 0
        self.target = target
        self.source = source
        self.sent = sent
        self.cause = cause


@final
class Sending(Cause):
    """A packet as it travels: what all its copies have in common."""

    __slots__ = (
        "depth",
        "header_bytes",
        "label",
        "message",
        "packet",
        "payload_bytes",
        "receive_cost",
        "send_cost",
    )

    def __init__(
        self,
        packet: Packet,
        message: int,
        label: int,
        header_bytes: int,
        payload_bytes: int,
        send_cost: int,
        receive_cost: int,
    ) -> None:
        self.packet = packet
        self.message = message
        self.label = label
        self.depth = 1
        self.header_bytes = header_bytes
        self.payload_bytes = payload_bytes
        self.send_cost = send_cost
        self.receive_cost = receive_cost


@final
class Answer(Cause):
    """A destination's answer to a client's multicast reaches the client."""

    __slots__ = ("message",)

    def __init__(self, message: int) -> None:
        self.message = message


@final
class Cast(Cause):
    """A process multicasts this message."""

    __slots__ = ("m",)

    def __init__(self, m: Message) -> None:
        self.m = m


@final
class NextCast(Cause):
    """It is time for a client to multicast its next message."""

    __slots__ = ()


@final
class TimerEnd(Cause):
    """A timer runs out, unless it was set anew or cancelled since."""

    __slots__ = ("level", "name", "number")

    def __init__(self, level: int, name: str, number: int) -> None:
        self.level = level
        self.name = name
        self.number = number


@final
class Crash(Cause):
    __slots__ = ()


@final
class Recovery(Cause):
    __slots__ = ()


@final
class Detection(Cause):
    """The failure detector of a process changes its mind about another."""

    __slots__ = ("notice",)

    def __init__(self, notice: Notice) -> None:
        self.notice = notice


@final
class EventQueue:
    """A binary heap of events.

    Compiled, the heap is sifted here, where comparing two events is comparing integers;
    in plain Python the standard library's heap of tuples is faster.
    """

    __slots__ = ("_events", "_scheduled", "_tuples")

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._tuples: list[tuple[int, int, Event]] = []
        self._scheduled = 0

    def __len__(self) -> int:
        return len(self._events) if COMPILED else len(self._tuples)

    def push(self, event: Event) -> None:
        order = self._scheduled
        self._scheduled = order + 1
        if not COMPILED:
            heappush(self._tuples, (event.time, order, event))
            return
        event.order = order
        time = event.time
        events = self._events
        events.append(event)
        position = len(events) - 1
        while position > 0:
            parent = (position - 1) >> 1
            above = events[parent]
            # The new event was scheduled last, so it goes after all of its time.
            if time >= above.time:
                break
            events[position] = above
            position = parent
        events[position] = event

    def pop(self) -> Event | None:
        """The next event, or None if there is none."""
        if not COMPILED:
            return heappop(self._tuples)[2] if self._tuples else None
        events = self._events
        if not events:
            return None
        last = events.pop()
        size = len(events)
        if size == 0:
            return last
        first = events[0]
        # The hole at the top sinks to a leaf and `last` rises from there: it was a leaf, so it
        # seldom rises far, and not comparing it on the way down saves a third of the work.
        position = 0
        child = 1
        while child < size:
            below = events[child]
            if child + 1 < size:
                other = events[child + 1]
                if other.time < below.time or (
                    other.time == below.time and other.order < below.order
                ):
                    below = other
                    child += 1
            events[position] = below
            position = child
            child = 2 * position + 1
        time = last.time
        order = last.order
        while position > 0:
            parent = (position - 1) >> 1
            above = events[parent]
            if above.time < time or (above.time == time and above.order < order):
                break
            events[position] = above
            position = parent
        events[position] = last
        return first
