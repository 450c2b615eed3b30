"""What can happen in a simulation, and the queue that holds it in order of time."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final, final

from librt.vecs import append, pop, vec
from mypy_extensions import i64, mypyc_attr

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

    __slots__ = ("cause", "sent", "source", "target", "time")

    def __init__(self, time: int, target: int, source: int, sent: int, cause: Cause) -> None:
        self.time = time
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

    Compiled, the heap holds only numbers (time, order and the place of the event in a
    table), which are compared and moved without touching an object; in plain Python the
    standard library's heap of tuples is faster.
    """

    def __init__(self) -> None:
        self._tuples: list[tuple[int, int, Event]] = []
        self._scheduled = 0
        self._times = vec[i64]()
        self._orders = vec[i64]()
        self._places = vec[i64]()
        self._events: list[Event | None] = []
        self._free = vec[i64]()
        """Places in the table that hold no event."""

    def __len__(self) -> int:
        return len(self._times) if COMPILED else len(self._tuples)

    def push(self, event: Event) -> None:
        scheduled = self._scheduled
        self._scheduled = scheduled + 1
        if not COMPILED:
            heappush(self._tuples, (event.time, scheduled, event))
            return
        self._push(i64(event.time), i64(scheduled), event)

    def pop(self) -> Event | None:
        """The next event, or None if there is none."""
        if not COMPILED:
            return heappop(self._tuples)[2] if self._tuples else None
        return self._pop()

    def _push(self, time: i64, order: i64, event: Event) -> None:
        place: i64
        if len(self._free) > 0:
            self._free, place = pop(self._free)
            self._events[place] = event
        else:
            place = len(self._events)
            self._events.append(event)
        times = append(self._times, time)
        orders = append(self._orders, order)
        places = append(self._places, place)
        position: i64 = len(times) - 1
        while position > 0:
            parent: i64 = (position - 1) >> 1
            # The new event was scheduled last, so it goes after all of its time.
            if times[parent] <= time:
                break
            times[position] = times[parent]
            orders[position] = orders[parent]
            places[position] = places[parent]
            position = parent
        times[position] = time
        orders[position] = order
        places[position] = place
        self._times = times
        self._orders = orders
        self._places = places

    def _pop(self) -> Event | None:
        if len(self._times) == 0:
            return None
        times, time = pop(self._times)
        orders, order = pop(self._orders)
        places, place = pop(self._places)
        size: i64 = len(times)
        first: i64 = place
        if size > 0:
            first = places[0]
            # The hole at the top sinks to a leaf, and what was last rises from there: it was
            # a leaf, so it seldom rises far.
            position: i64 = 0
            child: i64 = 1
            while child < size:
                other: i64 = child + 1
                if other < size and (
                    times[other] < times[child]
                    or (times[other] == times[child] and orders[other] < orders[child])
                ):
                    child = other
                times[position] = times[child]
                orders[position] = orders[child]
                places[position] = places[child]
                position = child
                child = 2 * position + 1
            while position > 0:
                parent: i64 = (position - 1) >> 1
                if times[parent] < time or (times[parent] == time and orders[parent] < order):
                    break
                times[position] = times[parent]
                orders[position] = orders[parent]
                places[position] = places[parent]
                position = parent
            times[position] = time
            orders[position] = order
            places[position] = place
        self._times = times
        self._orders = orders
        self._places = places
        event = self._events[first]
        self._events[first] = None
        self._free = append(self._free, first)
        return event
