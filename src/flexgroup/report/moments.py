"""What a space-time diagram shows, before it is drawn: packets, moments and their places in time.

The order at a process is that of its steps, and a packet is sent before it is received; times only
choose among the orders that remain. So a trace with clocks that differ is drawn correctly, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import pairwise
from math import log2
from statistics import median

MULTICAST = "multicast"
SEND = "send"
RECEIVE = "receive"
DELIVER = "deliver"


@dataclass(frozen=True)
class Event:
    """A row of a trace about one message, which is named `origin.seq`."""

    kind: str
    process: int
    step: int
    time: int
    message: str
    destinations: tuple[int, ...] = ()
    peer: int | None = None
    packet: str | None = None
    sent: int | None = None

    @property
    def place(self) -> tuple[int, int]:
        return self.process, self.step


@dataclass(frozen=True)
class Packet:
    """From a send to its receive; one of them is missing if it was not recorded."""

    send: Event | None
    receive: Event | None

    @property
    def ends(self) -> list[Event]:
        return [event for event in (self.send, self.receive) if event is not None]


@dataclass
class Moment:
    """Events of one process that are drawn at one point: what one handler did."""

    process: int
    events: list[Event]
    mark: Event | None = None

    @property
    def time(self) -> int:
        return self.events[0].time


def packets_of(events: Iterable[Event]) -> list[Packet]:
    """One packet for each receive, and one for each send that nobody received."""
    events = list(events)
    sends: dict[tuple[int | None, int | None], Event] = {
        event.place: event for event in events if event.kind == SEND
    }
    packets = []
    received = set()
    for event in events:
        if event.kind == RECEIVE:
            sent = sends.get((event.peer, event.sent))
            packets.append(Packet(sent, event))
            if sent is not None:
                received.add(sent.place)
    packets += [Packet(send, None) for place, send in sends.items() if place not in received]
    return sorted(packets, key=lambda packet: (packet.ends[0].time, *packet.ends[0].place))


def thinned(
    packets: Sequence[Packet], witness: Collection[tuple[int, int]], most: int
) -> list[Packet]:
    """At most so many packets, those next to the witness first."""
    processes = {process for process, _ in witness}
    last = {process: max(s for p, s in witness if p == process) for process in processes}

    def distance(packet: Packet) -> tuple[int, int]:
        outside = sum(end.process not in processes for end in packet.ends)
        late = sum(end.step > last.get(end.process, end.step) for end in packet.ends)
        before = [
            step - end.step
            for end in packet.ends
            for process, step in witness
            if process == end.process and step >= end.step
        ]
        return outside + late, min(before, default=0)

    nearest = set(sorted(range(len(packets)), key=lambda i: distance(packets[i]))[:most])
    return [packet for i, packet in enumerate(packets) if i in nearest]


def moments_of(events: Iterable[Event]) -> list[Moment]:
    """Events in steps that follow each other without a gap are one moment, up to its mark: what a
    handler does when a packet arrives is a delivery and sends in the steps behind."""
    found: list[Moment] = []
    by_place = {event.place: event for event in events}
    for place in sorted(by_place):
        event = by_place[place]
        is_mark = event.kind in (MULTICAST, DELIVER)
        current = found[-1] if found else None
        if (
            current is not None
            and current.process == event.process
            and current.events[-1].step + 1 == event.step
            and event.kind in (SEND, DELIVER)
            and not (is_mark and current.mark is not None)
        ):
            current.events.append(event)
        else:
            current = Moment(event.process, [event])
            found.append(current)
        if is_mark:
            current.mark = event
    return found


@dataclass(frozen=True)
class Spacing:
    """Smallest distances along the axis of time."""

    apart: float = 9.0
    """Between moments of different processes."""
    furthest: float = 42.0
    """The same, however much time lies between them."""
    same_process: float = 30.0
    marked: float = 36.0
    """Between moments of a process that have labels beside them."""
    packet: float = 34.0
    """From a send to its receive."""


def arrange(
    moments: Sequence[Moment],
    packets: Iterable[Packet],
    labelled: Collection[tuple[int, int]],
    spacing: Spacing,
) -> list[float]:
    """The place of every moment: in order of time, spaced to be readable and not to scale."""
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
            gap = min(spacing.furthest, spacing.apart * (1 + log2(1 + (moment.time - now) / unit)))
            now = moment.time
        place = max(earliest[index], latest + gap)
        if index > 0 and moments[index - 1].process == moment.process:
            wide = _has_label(moments[index - 1], labelled) and _has_label(moment, labelled)
            distance = spacing.marked if wide else spacing.same_process
            place = max(place, places[index - 1] + distance)
        places[index] = latest = place
        for arrival in arrivals.get(index, ()):
            earliest[arrival] = max(earliest[arrival], place + spacing.packet)
    return places


def _has_label(moment: Moment, labelled: Collection[tuple[int, int]]) -> bool:
    return moment.mark is not None and moment.mark.place in labelled


def _usual_gap(moments: Sequence[Moment]) -> float:
    times = sorted({moment.time for moment in moments})
    return median(b - a for a, b in pairwise(times)) if len(times) > 1 else 1.0


def _in_order(moments: Sequence[Moment], journeys: Iterable[tuple[int, int]]) -> list[int]:
    """By time, but never against the order at a process, nor from a receive to its send unless the
    trace contradicts itself."""
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
