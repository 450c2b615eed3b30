"""What can happen in a simulation, and the queue that holds it in order of time."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final, final

from mypy_extensions import mypyc_attr

from flexgroup.core.layer import Notice
from flexgroup.core.message import Message, Packet

COMPILED: Final = not __file__.endswith(".py")


@mypyc_attr(allow_interpreted_subclasses=True)
class Event:
    """Something that will happen at a time; ties are broken by the order of scheduling."""

    __slots__ = ("order", "time")

    def __init__(self, time: int) -> None:
        self.time = time
        self.order = 0


@final
class Sending:
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
        depth: int,
        header_bytes: int,
        payload_bytes: int,
        send_cost: int,
        receive_cost: int,
    ) -> None:
        self.packet = packet
        self.message = message
        self.label = label
        self.depth = depth
        self.header_bytes = header_bytes
        self.payload_bytes = payload_bytes
        self.send_cost = send_cost
        self.receive_cost = receive_cost


@final
class Arrival(Event):
    """A copy of a packet reaches its target; `sent` is the sender's step."""

    __slots__ = ("sending", "sent", "source", "target")

    def __init__(self, time: int, target: int, source: int, sent: int, sending: Sending) -> None:
        super().__init__(time)
        self.target = target
        self.source = source
        self.sent = sent
        self.sending = sending


@final
class Answer(Event):
    """A destination's answer to a client's multicast reaches the client."""

    __slots__ = ("client", "message")

    def __init__(self, time: int, client: int, message: int) -> None:
        super().__init__(time)
        self.client = client
        self.message = message


@final
class Cast(Event):
    """A process multicasts this message."""

    __slots__ = ("m",)

    def __init__(self, time: int, m: Message) -> None:
        super().__init__(time)
        self.m = m


@final
class NextCast(Event):
    """It is time for a client to multicast its next message."""

    __slots__ = ("client",)

    def __init__(self, time: int, client: int) -> None:
        super().__init__(time)
        self.client = client


@final
class TimerEnd(Event):
    """A timer runs out, unless it was set anew or cancelled since."""

    __slots__ = ("level", "name", "number", "process")

    def __init__(self, time: int, process: int, level: int, name: str, number: int) -> None:
        super().__init__(time)
        self.process = process
        self.level = level
        self.name = name
        self.number = number


@final
class Crash(Event):
    __slots__ = ("process",)

    def __init__(self, time: int, process: int) -> None:
        super().__init__(time)
        self.process = process


@final
class Recovery(Event):
    __slots__ = ("process",)

    def __init__(self, time: int, process: int) -> None:
        super().__init__(time)
        self.process = process


@final
class Detection(Event):
    """The failure detector of a process changes its mind about another."""

    __slots__ = ("notice", "process")

    def __init__(self, time: int, process: int, notice: Notice) -> None:
        super().__init__(time)
        self.process = process
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

    def pop(self) -> Event:
        if not COMPILED:
            return heappop(self._tuples)[2]
        events = self._events
        last = events.pop()
        size = len(events)
        if size == 0:
            return last
        first = events[0]
        time = last.time
        order = last.order
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
            if time < below.time or (time == below.time and order < below.order):
                break
            events[position] = below
            position = child
            child = 2 * position + 1
        events[position] = last
        return first
