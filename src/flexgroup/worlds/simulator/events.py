"""What can happen in a simulation, and the queue that holds it in order of time.

Most often a packet arrives: the cause is a `Transmission`, with nothing around it. A message that
its origin multicasts, and the notice of a failure detector, stand for themselves as well. Every
other cause has a class of its own here.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final, final

from librt.vecs import append, pop, vec
from mypy_extensions import i64

COMPILED: Final = not __file__.endswith(".py")


@final
class Answer:
    """A destination's answer to a client's multicast reaches the client."""

    __slots__ = ("message", "process")

    def __init__(self, process: int, message: int) -> None:
        self.process = process
        self.message = message


@final
class NextCast:
    """It is time for a client to multicast its next message."""

    __slots__ = ()


@final
class TimerEnd:
    """A timer runs out, unless it was set anew or cancelled since."""

    __slots__ = ("level", "name", "number")

    def __init__(self, level: int, name: str, number: int) -> None:
        self.level = level
        self.name = name
        self.number = number


@final
class Crash:
    __slots__ = ()


@final
class Recovery:
    __slots__ = ()


END_BITS: Final = 14
"""The bits of a process or client: a scenario has at most 2 x 4096 of them."""
END_MASK: Final = (1 << END_BITS) - 1

NO_PLACE: Final = -1
NO_TIME: Final = -1
RECENT_TIMES: Final = 4093
"""How many times a queue can find again; a prime, as times are often multiples of a cost."""


class EventQueue:
    """Events in order of time: at this time, a cause reaches its target.

    Ties are broken by the order of scheduling. Where the cause is a packet, `source` sent it at its
    step `sent`. What is known of the event popped last are attributes, so that none is an object.
    A heap of tuples from the standard library is the fastest queue there is in plain Python.
    """

    def __init__(self) -> None:
        self.time = 0
        self.target = 0
        self.source = 0
        self.sent = 0
        self.scheduled = 0
        """How many events were ever pushed."""
        self._heap: list[tuple[int, int, int, int, int, object]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def is_before(self, time: int) -> bool:
        """Whether an event happens before this time."""
        return len(self._heap) > 0 and self._heap[0][0] < time

    def push(self, time: int, target: int, source: int, sent: int, cause: object) -> None:
        scheduled = self.scheduled
        self.scheduled = scheduled + 1
        heappush(self._heap, (time, scheduled, target, source, sent, cause))

    def pop(self) -> object:
        """The cause of the next event; there must be one."""
        self.time, _, self.target, self.source, self.sent, cause = heappop(self._heap)
        return cause


@final
class NativeQueue(EventQueue):
    """The same for compiled code: a binary heap that moves numbers without making objects.

    It holds only numbers (time, order and the place of the event in tables). Where delays are
    exact, a million events happen at a few thousand times: those of one time form a chain in which
    each names the next, and only its head is in the heap.
    """

    def __init__(self) -> None:
        super().__init__()
        self._times = vec[i64]()
        self._orders = vec[i64]()
        self._places = vec[i64]()
        self._causes: list[object] = []
        self._ends = vec[i64]()
        """The step of sending, source and target of the event at each place, in one integer."""
        self._nexts = vec[i64]()
        """The place of the event that follows in the same chain, or NO_PLACE."""
        self._free = vec[i64]()
        """Places in the tables that hold no event."""
        self._recent_times = vec[i64]([NO_TIME] * RECENT_TIMES)
        """The times that have a chain which can go on, each at its remainder by RECENT_TIMES."""
        self._recent_ends = vec[i64]([NO_PLACE] * RECENT_TIMES)
        """The last event in the chain of that time."""

    def __len__(self) -> int:
        return len(self._causes) - len(self._free)

    def is_before(self, time: int) -> bool:
        return len(self._times) > 0 and self._times[0] < i64(time)

    def push(self, time: int, target: int, source: int, sent: int, cause: object) -> None:
        scheduled = self.scheduled
        self.scheduled = scheduled + 1
        ends: i64 = (((i64(sent) << END_BITS) | i64(source)) << END_BITS) | i64(target)
        self._push(i64(time), i64(scheduled), ends, cause)

    def _push(self, time: i64, order: i64, ends: i64, cause: object) -> None:
        place: i64
        if len(self._free) > 0:
            self._free, place = pop(self._free)
            self._causes[place] = cause
            self._ends[place] = ends
            self._nexts[place] = NO_PLACE
        else:
            place = len(self._causes)
            self._causes.append(cause)
            self._ends = append(self._ends, ends)
            self._nexts = append(self._nexts, i64(NO_PLACE))
        recent: i64 = time % RECENT_TIMES
        if self._recent_times[recent] == time:
            self._nexts[self._recent_ends[recent]] = place
            self._recent_ends[recent] = place
            return
        self._recent_times[recent] = time
        self._recent_ends[recent] = place
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

    def pop(self) -> object:
        first: i64 = self._places[0]
        self.time = int(self._times[0])
        following: i64 = self._nexts[first]
        if following != NO_PLACE:
            self._places[0] = following
        else:
            recent: i64 = self._times[0] % RECENT_TIMES
            if self._recent_ends[recent] == first:
                self._recent_times[recent] = NO_TIME
                self._recent_ends[recent] = NO_PLACE
            self._drop_first()
        ends: i64 = self._ends[first]
        self.target = int(ends & END_MASK)
        self.source = int((ends >> END_BITS) & END_MASK)
        self.sent = int(ends >> (2 * END_BITS))
        cause = self._causes[first]
        self._causes[first] = None
        self._free = append(self._free, first)
        return cause

    def _drop_first(self) -> None:
        """Take the chain with the earliest time, of which nothing is left, out of the heap."""
        times, time = pop(self._times)
        orders, order = pop(self._orders)
        places, place = pop(self._places)
        size: i64 = len(times)
        if size > 0:
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


def new_event_queue() -> EventQueue:
    """The queue that suits this form, compiled or not."""
    return NativeQueue() if COMPILED else EventQueue()
