"""The journal of a run as a list of events in memory, for whoever looks at a few of them."""

from __future__ import annotations

from dataclasses import dataclass

from flexgroup.core.journal import DELIVER, MULTICAST, RECEIVE, SEND, Journal, Transmission
from flexgroup.core.message import NO_MESSAGE, Message, MessageId, Packet


@dataclass(frozen=True)
class Event:
    """One event in the history of a process; the fields are the columns of the trace."""

    kind: int
    process: int
    step: int
    time: int
    message: MessageId = NO_MESSAGE
    destinations: tuple[int, ...] = ()
    peer: int = 0
    packet: Packet | None = None
    depth: int = 0
    sent: int = 0
    """For a packet that arrives, the step at which its sender sent it."""
    detail: str | None = None


class EventList(Journal):
    """Keeps all events in the order in which they happened."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def multicast(self, process: int, step: int, time: int, m: Message) -> None:
        self.events.append(Event(MULTICAST, process, step, time, m.id, m.destinations))

    def send(
        self, process: int, step: int, time: int, target: int, transmission: Transmission
    ) -> None:
        self._packet(SEND, process, step, time, target, transmission, 0)

    def receive(
        self,
        process: int,
        step: int,
        time: int,
        sender: int,
        transmission: Transmission,
        sent: int,
        queued: int,
    ) -> None:
        self._packet(RECEIVE, process, step, time, sender, transmission, sent)

    def deliver(self, process: int, step: int, time: int, m: Message, depth: int) -> None:
        self.events.append(Event(DELIVER, process, step, time, m.id, depth=depth))

    def other(
        self, kind: int, process: int, step: int, time: int, peer: int, detail: str | None
    ) -> None:
        self.events.append(Event(kind, process, step, time, peer=peer, detail=detail))

    def _packet(
        self,
        kind: int,
        process: int,
        step: int,
        time: int,
        peer: int,
        transmission: Transmission,
        sent: int,
    ) -> None:
        packet = transmission.packet
        self.events.append(
            Event(
                kind,
                process,
                step,
                time,
                transmission.message,
                peer=peer,
                packet=packet,
                depth=transmission.depth,
                sent=sent,
                detail=packet.detail(),
            )
        )
