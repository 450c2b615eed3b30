"""Histories for tests, told event by event in the order in which they happened."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from flexgroup.core.message import MessageId, message_id
from flexgroup.trace.history import (
    Deliveries,
    Faults,
    History,
    Ints,
    Multicasts,
    Packets,
    View,
    views_of,
)
from flexgroup.trace.schema import CRASH, DELIVER, MULTICAST, RECEIVE, RECOVER, SEND, VIEW


@dataclass(frozen=True)
class Event:
    process: int
    kind: str
    message: MessageId = -1
    """For a view, its number."""
    others: tuple[int, ...] = ()
    """The destinations of a multicast, the other end of a packet, or the members of a view."""


def identity(name: str) -> MessageId:
    origin, seq = name.split(".")
    return message_id(int(origin), int(seq))


def told(story: str, processes: int = 4, complete: bool = True) -> History:
    """A history from lines such as these, the line number being the time:

    0 multicast 0.0 to 1,2
    0 send 0.0 to 1
    1 receive 0.0 from 0
    1 deliver 0.0
    2 crash
    1 view 3 of 0,1
    """
    return history_of(events_of(story), processes, complete)


def events_of(story: str) -> list[Event]:
    events = []
    for line in filter(str.strip, story.splitlines()):
        process, kind, *rest = line.split()
        message = -1
        if rest:
            message = int(rest[0]) if kind == VIEW else identity(rest[0])
        others = tuple(int(other) for other in rest[2].split(",")) if len(rest) > 1 else ()
        events.append(Event(int(process), kind, message, others))
    return events


def history_of(events: Sequence[Event], processes: int, complete: bool = True) -> History:
    process = np.array([event.process for event in events], dtype=np.int64)
    message = np.array([event.message for event in events], dtype=np.int64)
    kinds = np.array([event.kind for event in events], dtype=np.str_)
    order = np.argsort(process, kind="stable")
    step = np.empty(len(order), dtype=np.int64)
    step[order] = np.arange(len(order)) - np.searchsorted(process[order], process[order])

    def times(kind: str) -> Ints:
        chosen: Ints = order[kinds[order] == kind]
        return chosen

    def packets(kind: str) -> Packets:
        time = times(kind)
        peer = np.array([events[place].others[0] for place in time], dtype=np.int64)
        code = np.zeros(len(time), dtype=np.int64)
        return Packets(
            *(process[time], step[time], time, message[time]),
            peer=peer,
            packet=("Data",),
            packet_code=code,
        )

    def faults(kind: str) -> Faults:
        time = times(kind)
        return Faults(process[time], step[time], time)

    multicast, deliver, view = times(MULTICAST), times(DELIVER), times(VIEW)
    installed = [View(events[place].message, events[place].others) for place in view]
    targets = [events[place].others for place in multicast]
    return History(
        run="told",
        processes=processes,
        complete=complete,
        multicasts=Multicasts(
            *(process[multicast], step[multicast], multicast, message[multicast]),
            offsets=np.cumsum([0, *map(len, targets)], dtype=np.int64),
            targets=np.array([process for to in targets for process in to], dtype=np.int64),
        ),
        deliveries=Deliveries(process[deliver], step[deliver], deliver, message[deliver]),
        sends=packets(SEND),
        receives=packets(RECEIVE),
        crashes=faults(CRASH),
        recoveries=faults(RECOVER),
        views=views_of(process[view], step[view], view, installed),
    )


def correct_events(messages: int, processes: int, seed: int, in_flight: int = 5) -> list[Event]:
    """Messages to random sets, some overlapping in time, all delivered in one order.

    Every sender sends one packet to each destination.
    """
    chance = random.Random(seed)
    multicast: list[Event] = []
    events: list[Event] = []
    sent = [0] * processes
    for number in range(messages + in_flight):
        if number < messages:
            origin = chance.randrange(processes)
            to = tuple(sorted(chance.sample(range(processes), chance.randint(2, 4))))
            event = Event(origin, MULTICAST, message_id(origin, sent[origin]), to)
            sent[origin] += 1
            multicast.append(event)
            events.append(event)
            events += (Event(origin, SEND, event.message, (process,)) for process in to)
        if number >= in_flight:
            event = multicast[number - in_flight]
            for process in event.others:
                events.append(Event(process, RECEIVE, event.message, (event.process,)))
                events.append(Event(process, DELIVER, event.message))
    return events


def where(events: list[Event], kind: str, process: int | None = None) -> list[int]:
    """The places of events of a kind, at one process or at all."""
    return [
        place
        for place, event in enumerate(events)
        if event.kind == kind and process in (None, event.process)
    ]


def swapped(events: list[Event], one: int, other: int) -> list[Event]:
    """The same events, two of one process having exchanged messages."""
    assert events[one].process == events[other].process
    changed = list(events)
    changed[one] = replace(events[one], message=events[other].message)
    changed[other] = replace(events[other], message=events[one].message)
    return changed


def inserted(events: list[Event], place: int, story: str) -> list[Event]:
    return events[:place] + events_of(story) + events[place:]
