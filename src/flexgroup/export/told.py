"""The events of a run in the order of time, each in a few words."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from flexgroup.diagram.events import Place, TraceEvent
from flexgroup.trace.names import Names
from flexgroup.trace.schema import (
    CHOICE,
    CRASH,
    DELIVER,
    MULTICAST,
    RECEIVE,
    RECOVER,
    SEND,
    SUSPECT,
    TIMER,
    VIEW,
)


def in_order(events: Iterable[TraceEvent]) -> list[TraceEvent]:
    """Return events by time, but each behind those of its process before it, and a receive behind
    its send, whatever the clocks of different machines said."""
    left: dict[int, list[TraceEvent]] = {}
    for event in sorted(events, key=lambda event: event.place, reverse=True):
        left.setdefault(event.process, []).append(event)
    unsent = {event.place for stack in left.values() for event in stack if event.kind == SEND}
    waiting: dict[Place, int] = {}
    ready = [(stack[-1].time, process) for process, stack in left.items()]
    heapify(ready)
    ordered = []
    while ready:
        _, process = heappop(ready)
        event = left[process][-1]
        sent = (event.peer or 0, event.sent or 0)
        if event.kind == RECEIVE and sent in unsent:
            waiting[sent] = process  # it goes on when that has left
            continue
        ordered.append(left[process].pop())
        unsent.discard(event.place)
        going_on = [process]
        if event.kind == SEND and event.place in waiting:
            going_on.append(waiting.pop(event.place))
        for other in going_on:
            if left[other]:
                heappush(ready, (left[other][-1].time, other))
    return ordered


def words_of(event: TraceEvent, names: Names) -> str:
    """Return what a process did, or what happened to it."""
    message = "" if event.message is None else names.message(event.message)
    peer = "" if event.peer is None else names.short(event.peer)
    details = event.details
    about = f" about {message}" if event.message is not None else ""
    packet = f"{event.packet or 'packet'}{about}"
    members = names.listed(details.get("members", ()))
    words = {
        MULTICAST: f"multicast {message} to {names.listed(event.destinations)}",
        DELIVER: f"deliver {message}",
        SEND: f"send {packet} to {peer}",
        RECEIVE: f"receive {packet} from {peer}",
        TIMER: f"timer {details.get('name', '')}",
        CHOICE: f"choose {details.get('chosen', '')} of {details.get('name', '')}",
        SUSPECT: f"{'trust' if event.is_trust else 'suspect'} {peer}",
        VIEW: f"view {details.get('number', '')} of {members}",
        CRASH: "crash",
        RECOVER: "recover",
    }
    return words.get(event.kind, event.kind)


def name_of_process(process: int, names: Names) -> str:
    """Return the name of a process, or of a client, as one word."""
    if process < len(names.nodes):
        return "-".join(names.nodes[process].split())
    return names.process(process).replace(" ", "")
