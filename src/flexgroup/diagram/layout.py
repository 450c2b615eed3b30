"""How a diagram is laid out, and where along the axis of time its moments stand.

The order at a process is that of its steps, and a packet is sent before it is received; times only
choose among the orders that remain. So a trace with clocks that differ is drawn correctly, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import pairwise
from math import log2
from statistics import median

from flexgroup.diagram.selection import Moment, SentPacket


@dataclass(frozen=True)
class Orientation:
    """How the places along a time line, and the lines, become places on the picture."""

    down: bool
    start: float
    """The distance from the border to the beginning of the time lines."""
    side: float
    """The distance from the border to the first time line."""
    lane: tuple[float, float]
    """The smallest and the largest distance from one time line to the next."""
    labels: float
    """The room beside the last time line."""
    breadth: float
    """How broad the picture is across the time lines, if so many fit."""
    time_labels: float
    """The smallest distance between two labels of time."""
    length: float
    """How long the time lines are, if what happens on them would fit on shorter ones."""
    legend: tuple[float, float]
    """The smallest and the largest width of the legend."""
    name: int
    """How many characters of the name of a line have room, at most."""


ACROSS = Orientation(
    down=False, start=80, side=30, lane=(50, 60), labels=58, breadth=420, time_labels=96,
    length=560, legend=(640, 900), name=28,
)  # fmt: skip
DOWN = Orientation(
    down=True, start=46, side=84, lane=(34, 62), labels=70, breadth=326, time_labels=30,
    length=330, legend=(326, 326), name=18,
)  # fmt: skip

APART = 9.0
"""The usual distance between moments of different processes."""

FURTHEST = 42.0
"""The largest distance between one moment and the next, however much time lies between them."""

PACKET = 34.0
"""The smallest distance from a send to its receive."""


def arrange(
    moments: Sequence[Moment],
    packets: Iterable[SentPacket],
    room: Callable[[Moment], float],
) -> list[float]:
    """Place every moment in the order of time, spaced to be readable and not to scale.

    `room` says how far what is drawn at a moment reaches to either side.
    """
    holder = {event.place: i for i, moment in enumerate(moments) for event in moment.events}
    journeys = [
        (holder[packet.send.place], holder[packet.receive.place])
        for packet in packets
        if packet.send is not None and packet.receive is not None
    ]
    arrivals: dict[int, list[int]] = {}
    for departure, arrival in journeys:
        arrivals.setdefault(departure, []).append(arrival)
    unit = _usual_gap(moments)
    earliest = [0.0] * len(moments)
    places = [0.0] * len(moments)
    latest = 0.0
    now = min((moment.time for moment in moments), default=0)
    for index in _in_order(moments, journeys):
        moment = moments[index]
        gap = 0.0
        if moment.time > now:
            gap = min(FURTHEST, APART * (1 + log2(1 + (moment.time - now) / unit)))
            now = moment.time
        place = max(earliest[index], latest + gap)
        if index > 0 and moments[index - 1].process == moment.process:
            place = max(place, places[index - 1] + room(moments[index - 1]) + room(moment))
        places[index] = latest = place
        for arrival in arrivals.get(index, ()):
            earliest[arrival] = max(earliest[arrival], place + PACKET)
    return places


def _usual_gap(moments: Sequence[Moment]) -> float:
    times = sorted({moment.time for moment in moments})
    return median(b - a for a, b in pairwise(times)) if len(times) > 1 else 1.0


def _in_order(moments: Sequence[Moment], journeys: Iterable[tuple[int, int]]) -> list[int]:
    """Order the moments by time, but never against the order at a process, and each send before its
    receive unless the trace contradicts itself."""
    before = {
        index: {index - 1} if index and moments[index - 1].process == moment.process else set()
        for index, moment in enumerate(moments)
    }
    with_packets = {index: set(earlier) for index, earlier in before.items()}
    for departure, arrival in journeys:
        with_packets[arrival].add(departure)
    sorter = TopologicalSorter(with_packets)
    try:
        sorter.prepare()
    except CycleError:
        sorter = TopologicalSorter(before)
        sorter.prepare()
    ready: list[tuple[int, int]] = []
    order = []
    while sorter.is_active():
        for index in sorter.get_ready():
            heappush(ready, (moments[index].time, index))
        _, index = heappop(ready)
        order.append(index)
        sorter.done(index)
    return order
