"""What a space-time diagram says in words: beside a mark, in it, and when one points at it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from flexgroup.diagram.events import TraceEvent
from flexgroup.diagram.selection import Moment, Selection, SentPacket
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

VERBS = {
    MULTICAST: "multicast {about}",
    DELIVER: "delivered {about}",
    SEND: "sent a packet about {about}",
    RECEIVE: "received a packet about {about}",
    SUSPECT: "suspected {peer}",
    VIEW: "installed view {number} of {members}",
    TIMER: "saw its timer '{name}' run out",
    CHOICE: "chose option {chosen} of '{name}'",
    CRASH: "crashed",
    RECOVER: "recovered",
}
"""What a process did, or what happened to it, from the details of the event."""

UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


class Wording:
    """The words for what was selected."""

    def __init__(self, selection: Selection, timed: bool) -> None:
        self.selection = selection
        self.timed = timed
        self.clock = Clock([moment.time for moment in selection.moments])

    def summary(self) -> str:
        """The picture for those who cannot see it."""
        letters = ", ".join(self.selection.letters.values())
        names = ", ".join(self.selection.names.process(process) for process in self.selection.lanes)
        return f"messages {letters}; {names}; {len(self.selection.packets)} packets"

    def event(self, event: TraceEvent) -> str:
        """What a process did, or what happened to it, at which step and when."""
        time = f", {self.clock.full(event.time)}" if self.timed else ""
        name = self.selection.names.process(event.process)
        return f"{name} {self._verb(event)}, step {event.step}{time}"

    def missing(self, process: int, message: str) -> str:
        letter = self.selection.letters[message]
        names = self.selection.names
        told = f"{letter} (message {names.message(message)})"
        return f"{names.process(process)} did not deliver {told}"

    def packet(self, packet: SentPacket) -> str:
        """What a packet was, and where it came from and went."""
        name = self.selection.names.process
        event = packet.ends[0]
        about = self.selection.letters[event.message] if event.message else "no message"
        words = f"{event.packet or 'packet'} about {about}"
        if packet.send is None:
            return f"{words} to {name(event.process)}, whose sending was not recorded"
        if packet.receive is None:
            peer = "" if event.peer is None else f" to {name(event.peer)}"
            return f"{words} from {name(event.process)}{peer}, not received"
        return (
            f"{words} from {name(packet.send.process)} (step {packet.send.step})"
            f" to {name(packet.receive.process)} (step {packet.receive.step})"
            f"{', a copy' if packet.is_copy else ''}"
        )

    def inside(self, event: TraceEvent) -> str:
        """The letter or the number in a mark."""
        if event.message is not None:
            return self.selection.letters[event.message]
        if event.kind == SUSPECT:
            # A name has no room in a mark, and stands below it.
            return "" if event.peer is None or self.selection.names.nodes else str(event.peer)
        return str(event.details.get("number" if event.kind == VIEW else "chosen", ""))

    def below(self, moment: Moment) -> str:
        """What stands below the mark of a moment: a name, the members of a view, its step."""
        event = moment.mark
        named = []
        if event is not None and event.kind == TIMER:
            named.append(str(event.details.get("name", "")))
        elif event is not None and event.kind == VIEW:
            named.append(self._members(event.details))
        elif event is not None and event.kind == SUSPECT and self.selection.names.nodes:
            named.append("" if event.peer is None else self.selection.names.short(event.peer))
        emphasised = self.selection.emphasised(moment)
        if emphasised is not None:
            named.append(f"step {emphasised.step}")
        return ", ".join(named)

    def _verb(self, event: TraceEvent) -> str:
        about = "no message"
        if event.message is not None:
            name = self.selection.names.message(event.message)
            about = f"{self.selection.letters[event.message]} (message {name})"
        peer = "another" if event.peer is None else self.selection.names.process(event.peer)
        told = {
            **event.details, "members": self._members(event.details), "about": about, "peer": peer,
        }  # fmt: skip
        words = "trusted {peer} again" if event.is_trust else VERBS[event.kind]
        if event.details.get("told"):
            words = "was told of view {number} of {members}"
        return words.format_map(defaultdict(str, told))

    def _members(self, details: Mapping[str, object]) -> str:
        members = details.get("members")
        if not isinstance(members, list) or not all(type(each) is int for each in members):
            return ""
        return f"{{{self.selection.names.listed(members)}}}"


class Clock:
    """Times as people read them: those of the run, or from the first event if that is long ago."""

    def __init__(self, times: list[int]) -> None:
        self.first = min(times, default=0)
        span = max(times, default=0) - self.first
        self.relative = self.first > 100 * span
        largest = span if self.relative else self.first + span
        self.size, self.unit = next((u for u in UNITS if u[0] * 2 <= largest), UNITS[-1])
        self.digits = 0 if self.size == 1 else 2 if span > self.size else 3

    def short(self, time: int) -> str:
        shown = (time - self.first if self.relative else time) / self.size
        return f"{'+' if self.relative else ''}{shown:.{self.digits}f} {self.unit}"

    def full(self, time: int) -> str:
        return f"time {time // UNITS[0][0]}.{time % UNITS[0][0]:09} s"
