"""What of a run a space-time diagram shows, before it is laid out.

Shown are the messages that the diagram is about with all their packets, every crash, recovery,
suspicion and view, the packets that follow from faults, and the timers, choices and packets about
no message meanwhile. A process at which any of this happens has a line. What does not fit is left
out from the farthest inwards, and nothing is left out silently: steps of a process have no gaps, so
a gap between two drawn events is a number of events that are not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from operator import attrgetter

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

MOST_PACKETS = 250
MOST_LANES = 24
MOST_OTHERS = 150
"""The most suspicions, views, choices and timers together."""

FAULTS = (CRASH, RECOVER)
OTHERS = (SUSPECT, VIEW, CHOICE, TIMER)
"""Events that concern no message, those that matter most first."""


_by_place = attrgetter("place")


@dataclass(frozen=True)
class SentPacket:
    """A packet from its send to its receive; one of them is missing if it was not recorded."""

    send: TraceEvent | None
    receive: TraceEvent | None
    is_copy: bool = False
    """Whether the same send was received before."""

    @property
    def ends(self) -> list[TraceEvent]:
        return [event for event in (self.send, self.receive) if event is not None]


@dataclass
class Moment:
    """Events of one process that are drawn at one point: what one handler did."""

    process: int
    events: list[TraceEvent]
    mark: TraceEvent | None = None
    """The event that is drawn as more than a dot."""

    @property
    def time(self) -> int:
        return self.events[0].time

    @property
    def first_step(self) -> int:
        return self.events[0].step

    @property
    def last_step(self) -> int:
        return self.events[-1].step


class Selection:
    """What is drawn, whichever way the lines run."""

    def __init__(
        self,
        events: Collection[TraceEvent],
        letters: Mapping[str, str],
        witness: frozenset[Place],
        names: Names,
        complete: bool,
    ) -> None:
        self.witness = witness
        self.names = names
        self.complete = complete
        self.notes: list[str] = []
        about = _messages_shown(events, letters, witness)
        following = _following_faults(events)
        events = [event for event in events if event.message is None or event.message in about]
        self.letters = _all_letters(events, letters)
        self.multicasts = {event.message: event for event in events if event.kind == MULTICAST}
        packets = _packets_shown(events, following)
        others = self._others_meanwhile(events)
        lanes = self._lanes(events, packets, others)
        self.packets = self._packets(packets, lanes)
        events = [event for event in events if event.process in lanes]
        drawn = [event for event in events if event.kind in (MULTICAST, DELIVER, *FAULTS)]
        drawn += [end for packet in self.packets for end in packet.ends]
        drawn += self._others([event for event in others if event.process in lanes], events)
        drawn += [event for event in events if event.place in witness]
        self.moments = moments_of(drawn)
        self.missing = _not_delivered(events, lanes) if complete else []
        busy = {event.process for event in drawn} | {process for process, _ in self.missing}
        self.lanes = [process for process in lanes if process in busy]
        self.links = self._links(drawn)
        self.last_step = {event.process: event.step for event in sorted(events, key=_by_place)}

    @property
    def ending(self) -> str:
        """How a packet that was not received is drawn."""
        return "lost" if self.complete else "unfinished"

    def emphasised(self, moment: Moment) -> TraceEvent | None:
        """Return the event of a moment that belongs to the witness; a mark hides others."""
        if moment.mark is not None:
            return moment.mark if moment.mark.place in self.witness else None
        return next((event for event in moment.events if event.place in self.witness), None)

    def _lanes(
        self,
        events: Collection[TraceEvent],
        packets: Collection[SentPacket],
        others: Collection[TraceEvent],
    ) -> list[int]:
        """Choose the processes to draw, clients first: what they multicast flows down.

        A packet about no message brings the process at its other end along, but two processes
        that do nothing else than exchange such packets have no part in what is shown.
        """
        origins = {event.process for event in events if event.kind == MULTICAST}
        faulty = {event.process for event in events if event.kind in FAULTS}
        concerned = {event.process for event in events if event.message is not None} | faulty
        for event in events:
            concerned.update(event.destinations)
        chosen = {process for process, _ in self.witness}
        concerned |= chosen & {event.process for event in events}
        involved = concerned | {event.process for event in others}
        ends = [{end.process for end in packet.ends} for packet in packets]
        involved = involved.union(*(both for both in ends if both & involved))
        if not involved:
            involved = {event.process for event in events}
        kept = sorted(
            involved,
            key=lambda p: (
                p not in chosen,
                p not in origins,
                p not in faulty,
                p not in concerned,
                p,
            ),
        )[:MOST_LANES]
        if len(kept) < len(involved):
            self.notes.append(f"{len(kept)} of {len(involved)} processes are drawn.")
        return sorted(kept, key=lambda p: (not self.names.is_client(p), p))

    def _note_left_out(self, count: int, one_or_more: tuple[str, str], which: str) -> None:
        if count:
            what, are = (one_or_more[0], "is") if count == 1 else (one_or_more[1], "are")
            self.notes.append(f"{count} {what} {which} {are} left out.")

    def _packets(self, packets: Collection[SentPacket], lanes: Collection[int]) -> list[SentPacket]:
        """Choose packets between processes with lines, and say how many others there are."""
        between = [packet for packet in packets if all(end.process in lanes for end in packet.ends)]
        self._note_left_out(
            len(packets) - len(between),
            ("packet", "packets"),
            "from or to processes without a line",
        )
        kept = nearest_packets(between, self.witness, MOST_PACKETS)
        if len(kept) < len(between):
            self.notes.append(
                f"{len(kept)} of {len(between)} packets are drawn, "
                "those next to the violation first."
            )
        return kept

    def _others_meanwhile(self, events: Collection[TraceEvent]) -> list[TraceEvent]:
        """Return all suspicions and views, and the choices and timers while there were messages."""
        first, last = _span(events)
        others = [event for event in events if event.kind in OTHERS]
        meanwhile = [
            event
            for event in others
            if event.kind in (SUSPECT, VIEW) or first <= event.time <= last
        ]
        self._note_left_out(
            len(others) - len(meanwhile),
            ("timer or choice", "timers and choices"),
            "before the first or after the last event about a message",
        )
        return meanwhile

    def _others(self, found: list[TraceEvent], events: Collection[TraceEvent]) -> list[TraceEvent]:
        """Choose suspicions and views before choices and timers, and those near the witness."""
        if len(found) <= MOST_OTHERS:
            return found
        times = [event.time for event in events if event.place in self.witness]
        times = times or [_span(events)[1]]

        def rank(event: TraceEvent) -> tuple[bool, int, int, Place]:
            far = min(abs(event.time - time) for time in times)
            return event.place not in self.witness, OTHERS.index(event.kind), far, event.place

        self.notes.append(
            f"{MOST_OTHERS} of {len(found)} suspicions, views, choices and timers are drawn."
        )
        return sorted(found, key=rank)[:MOST_OTHERS]

    def _links(self, drawn: Collection[TraceEvent]) -> list[tuple[TraceEvent, TraceEvent]]:
        """Join multicasts and deliveries of messages about which no packet was recorded."""
        about = {end.message for packet in self.packets for end in packet.ends}
        origin = {e.message: e for e in drawn if e.kind == MULTICAST and e.message not in about}
        return [(origin[e.message], e) for e in drawn if e.kind == DELIVER and e.message in origin]


def packets_of(events: Iterable[TraceEvent]) -> list[SentPacket]:
    """Return one packet for each receive, and one for each send that nobody received."""
    events = sorted(events, key=lambda event: (event.time, event.place))
    sends: dict[tuple[int | None, int | None], TraceEvent] = {
        event.place: event for event in events if event.kind == SEND
    }
    packets = []
    received = set()
    for event in events:
        if event.kind == RECEIVE:
            sent = sends.get((event.peer, event.sent))
            packets.append(SentPacket(sent, event, sent is not None and sent.place in received))
            if sent is not None:
                received.add(sent.place)
    packets += [SentPacket(send, None) for place, send in sends.items() if place not in received]
    return sorted(packets, key=lambda packet: (packet.ends[0].time, *packet.ends[0].place))


def _packets_shown(
    events: Collection[TraceEvent], following: Collection[Place]
) -> list[SentPacket]:
    """Return the packets about the messages, those about none while there were messages, and those
    that follow from a fault, whenever that was."""
    first, last = _span(events)
    return [
        packet
        for packet in packets_of(events)
        if any(
            end.message is not None or first <= end.time <= last or end.place in following
            for end in packet.ends
        )
    ]


def _following_faults(events: Iterable[TraceEvent]) -> set[Place]:
    """Return the places of the sends with which processes reacted to a crash, a recovery or a
    suspicion, or to a packet that was itself sent so."""
    reactions: list[list[TraceEvent]] = []
    reactions_to: dict[tuple[int | None, int | None], list[list[TraceEvent]]] = {}
    before: Place | None = None
    for event in sorted(events, key=_by_place):
        goes_on = event.kind in (SEND, DELIVER, VIEW)
        if not goes_on or before != (event.process, event.step - 1):
            reactions.append([])
        reactions[-1].append(event)
        if event.kind == RECEIVE:
            reactions_to.setdefault((event.peer, event.sent), []).append(reactions[-1])
        before = event.place
    waiting = [reaction for reaction in reactions if reaction[0].kind in (*FAULTS, SUSPECT)]
    found: set[Place] = set()
    while waiting:
        for event in waiting.pop():
            if event.kind == SEND and event.place not in found:
                found.add(event.place)
                waiting += reactions_to.get(event.place, [])
    return found


def nearest_packets(
    packets: Sequence[SentPacket], witness: Collection[Place], most: int
) -> list[SentPacket]:
    """Choose at most so many packets: those about a message first, and of these the ones that came
    shortly before the witness at its processes."""
    if len(packets) <= most:
        return list(packets)
    processes = {process for process, _ in witness}
    last = {process: max(s for p, s in witness if p == process) for process in processes}

    def distance(packet: SentPacket) -> tuple[bool, int, int]:
        outside = sum(end.process not in processes for end in packet.ends)
        late = sum(end.step > last.get(end.process, end.step) for end in packet.ends)
        before = [
            step - end.step
            for end in packet.ends
            for process, step in witness
            if process == end.process and step >= end.step
        ]
        return packet.ends[0].message is None, outside + late, min(before, default=0)

    kept = set(sorted(range(len(packets)), key=lambda i: distance(packets[i]))[:most])
    return [packet for i, packet in enumerate(packets) if i in kept]


def moments_of(events: Iterable[TraceEvent]) -> list[Moment]:
    """Put events in steps that follow each other without a gap into one moment, up to its mark.

    What a handler does when a packet arrives is a delivery and sends in the steps behind.
    """
    found: list[Moment] = []
    by_place = {event.place: event for event in events}
    for place in sorted(by_place):
        event = by_place[place]
        is_mark = event.kind not in (SEND, RECEIVE)
        current = found[-1] if found else None
        if (
            current is not None
            and current.process == event.process
            and current.last_step + 1 == event.step
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


def _span(events: Iterable[TraceEvent]) -> tuple[int, int]:
    """Return the times of the first and the last event about a message, or of any event at all."""
    events = list(events)
    times = [event.time for event in events if event.message is not None]
    times = times or [event.time for event in events]
    return min(times, default=0), max(times, default=0)


def _messages_shown(
    events: Collection[TraceEvent], letters: Mapping[str, str], witness: Collection[Place]
) -> set[str]:
    """Return the messages of the witness and those with letters; all, if there is no witness."""
    all_messages = {event.message for event in events if event.message is not None}
    if not witness:
        return all_messages
    named = {event.message for event in events if event.place in witness and event.message}
    return (named | set(letters)) or all_messages


def _all_letters(events: Collection[TraceEvent], letters: Mapping[str, str]) -> dict[str, str]:
    known = dict(letters)
    taken = set(known.values())
    free = (name for name in alphabet() if name not in taken)
    for event in sorted(events, key=lambda event: (event.time, event.place)):
        if event.message is not None and event.message not in known:
            known[event.message] = next(free)
    return known


def alphabet() -> Iterator[str]:
    """Yield a letter for each message, as many as are wanted."""
    for round_ in count():
        for letter in "abcdefghijklmnopqrstuvwxyz":
            yield f"{letter}{round_ or ''}"


def _not_delivered(events: Collection[TraceEvent], lanes: Collection[int]) -> list[tuple[int, str]]:
    """List the destinations that did not crash for good, and what they should have delivered."""
    delivered = {(event.process, event.message) for event in events if event.kind == DELIVER}
    down = {}
    for event in sorted(events, key=_by_place):
        if event.kind in FAULTS:
            down[event.process] = event.kind == CRASH
    wanted = {
        (process, event.message)
        for event in events
        if event.kind == MULTICAST and event.message is not None
        for process in event.destinations
        if process in lanes and not down.get(process)
    }
    return sorted(wanted - delivered)
