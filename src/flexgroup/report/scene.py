"""What a space-time diagram shows of the events about a few messages: lines, packets, marks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import count

from flexgroup.report.moments import (
    DELIVER,
    MULTICAST,
    Event,
    moments_of,
    packets_of,
    thinned,
)

MOST_PACKETS = 150
MOST_LANES = 24


class Scene:
    """What is drawn, whichever way the lines run."""

    def __init__(
        self,
        events: Collection[Event],
        letters: Mapping[str, str],
        witness: frozenset[tuple[int, int]],
        processes: int | None,
    ) -> None:
        self.witness = witness
        self.processes = processes
        self.notes: list[str] = []
        self.letters = _all_letters(events, letters)
        lanes = self._lanes(events)
        events = [event for event in events if event.process in lanes]
        packets = packets_of(events)
        self.packets = thinned(packets, witness, MOST_PACKETS)
        if len(self.packets) < len(packets):
            self.notes.append(
                f"{len(self.packets)} of {len(packets)} packets are drawn, "
                "those next to the violation first."
            )
        drawn = [event for event in events if event.kind in (MULTICAST, DELIVER)]
        drawn += [end for packet in self.packets for end in packet.ends]
        self.moments = moments_of(drawn)
        self.missing = _not_delivered(events, lanes)
        busy = {event.process for event in drawn} | {process for process, _ in self.missing}
        self.lanes = [process for process in lanes if process in busy]
        self.links = self._links(drawn)

    def is_client(self, process: int) -> bool:
        return self.processes is not None and process >= self.processes

    def name(self, process: int) -> str:
        return f"{'client' if self.is_client(process) else 'process'} {process}"

    def _lanes(self, events: Collection[Event]) -> list[int]:
        """Clients first: what they multicast flows down to the processes."""
        origins = {event.process for event in events if event.kind == MULTICAST}
        involved = {event.process for event in events}
        for event in events:
            involved.update(event.destinations)
        first = {process for process, _ in self.witness} | origins
        kept = sorted(involved, key=lambda p: (p not in first, p))[:MOST_LANES]
        if len(kept) < len(involved):
            self.notes.append(f"{len(kept)} of {len(involved)} processes are drawn.")
        return sorted(kept, key=lambda p: (not self.is_client(p), p))

    def _links(self, drawn: Collection[Event]) -> list[tuple[Event, Event]]:
        """From multicasts to deliveries of messages about which no packet was recorded."""
        about = {end.message for packet in self.packets for end in packet.ends}
        origin = {e.message: e for e in drawn if e.kind == MULTICAST and e.message not in about}
        links = [(origin[e.message], e) for e in drawn if e.kind == DELIVER and e.message in origin]
        if links:
            self.notes.append(
                "No packets were recorded; thin lines join a multicast and its deliveries."
            )
        return links


def _all_letters(events: Collection[Event], letters: Mapping[str, str]) -> dict[str, str]:
    known = dict(letters)
    taken = set(known.values())
    free = (name for name in _alphabet() if name not in taken)
    for event in sorted(events, key=lambda event: (event.time, event.place)):
        if event.message not in known:
            known[event.message] = next(free)
    return known


def _alphabet() -> Iterator[str]:
    for round_ in count():
        for letter in "abcdefghijklmnopqrstuvwxyz":
            yield f"{letter}{round_ or ''}"


def _not_delivered(events: Collection[Event], lanes: Collection[int]) -> list[tuple[int, str]]:
    delivered = {(event.process, event.message) for event in events if event.kind == DELIVER}
    wanted = {
        (process, event.message)
        for event in events
        if event.kind == MULTICAST
        for process in event.destinations
        if process in lanes
    }
    return sorted(wanted - delivered)
