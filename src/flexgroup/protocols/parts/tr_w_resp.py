"""Transmission with response, the procedure that all qualities of service of xAMP are made of.

Source: Rodrigues and Veríssimo 1992; section 2.3.1 of the FlexGroup dissertation:
tr-w-resp([m], ord, send, Mr, Pr, nr). The parameters keep their names. `send` has no
attribute: a process that does not send the first time just waits.

Layers keep these records; `Transmissions` sets timers and sends again for those that repeat the
same packet.
"""

from __future__ import annotations

from typing import Final, final

from flexgroup.core.layer import Layer, Notice, Record, Suspect, Trust
from flexgroup.core.message import Message, MessageId, Packet, message_id, name_of

RESPONSE_TICKS: Final = 50
"""How long to wait for responses before the next try."""


@final
class Data(Packet):
    """m, and its number at each destination."""

    m: Message
    numbers: tuple[int, ...]


@final
class Response(Packet):
    """m has come."""

    m: MessageId


@final
class Transmission(Record):
    """One call of tr-w-resp that has not ended."""

    m: Message
    packet: Packet
    """What m is sent in."""
    Pr: tuple[int, ...]
    """The processes of which responses are expected."""
    nr: int
    """How many responses are enough."""
    ord: bool = False
    """Whether all must respond to the same try."""
    Mr: tuple[int, ...] = ()
    """The bag of responses: who responded."""
    attempt: int = 1

    def respond(self, process: int) -> None:
        if process in self.Pr and process not in self.Mr:
            self.Mr = tuple(sorted([*self.Mr, process]))

    def has_enough(self) -> bool:
        return len(self.Mr) >= min(self.nr, len(self.Pr))

    def try_again(self) -> tuple[int, ...]:
        """Begin the next try; the processes to send to are returned."""
        self.attempt += 1
        if self.ord:
            self.Mr = ()
        return self.lacking()

    def lacking(self) -> tuple[int, ...]:
        return tuple([process for process in self.Pr if process not in self.Mr])

    def leave_out(self, process: int) -> None:
        """No response is expected of a process that is suspected, nor would it count."""
        self.Pr = tuple([other for other in self.Pr if other != process])
        self.Mr = tuple([other for other in self.Mr if other != process])


@final
class Transmissions(Record):
    """All calls of tr-w-resp at a process that have not ended."""

    open: dict[MessageId, Transmission] = {}
    suspected: set[int] = set()

    def expected(self, processes: tuple[int, ...]) -> tuple[int, ...]:
        """Those of whom a response can be expected: Pr of a new call."""
        return tuple([process for process in processes if process not in self.suspected])

    def start(self, layer: Layer, transmission: Transmission, send: bool) -> None:
        if send:
            layer.send(transmission.lacking(), transmission.packet)
        m = transmission.m.id
        self.open[m] = transmission
        layer.set_timer(name_of(m), RESPONSE_TICKS)
        self.end_if_enough(layer, m)

    def on_response(self, layer: Layer, sender: int, m: MessageId) -> None:
        transmission = self.open.get(m)
        if transmission is not None:
            transmission.respond(sender)
            self.end_if_enough(layer, m)

    def end_if_enough(self, layer: Layer, m: MessageId) -> None:
        if self.open[m].has_enough():
            del self.open[m]
            layer.cancel_timer(name_of(m))

    def on_timer(self, layer: Layer, name: str, itself: bool = True) -> None:
        """Send again to those that have not responded; to this process only if it sends itself."""
        transmission = self.open[message_of(name)]
        to = [p for p in transmission.try_again() if itself or p != layer.process]
        layer.send(tuple(to), transmission.packet)
        layer.set_timer(name, RESPONSE_TICKS)

    def on_notice(self, layer: Layer, notice: Notice) -> None:
        if isinstance(notice, Suspect):
            self.suspected.add(notice.process)
            for m in sorted(self.open):
                self.open[m].leave_out(notice.process)
                self.end_if_enough(layer, m)
        elif isinstance(notice, Trust):
            self.suspected.discard(notice.process)


def numbered(sent: dict[int, int], destinations: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers of the next message to these destinations; `sent` counts it."""
    numbers = tuple([sent.get(destination, 0) for destination in destinations])
    for destination, number in zip(destinations, numbers, strict=True):
        sent[destination] = number + 1
    return numbers


def numbered_at(process: int, origin: int, m: Message, numbers: tuple[int, ...]) -> MessageId:
    """The identity by which a destination knows repetitions of m: its origin and number there."""
    return message_id(origin, numbers[m.destinations.index(process)])


def participants(origin: int, m: Message) -> tuple[int, ...]:
    """The origin and the destinations."""
    return tuple(sorted({origin, *m.destinations}))


def message_of(timer: str) -> MessageId:
    """The message that a timer of this name is about: the name is that of the message."""
    origin, _, seq = timer.partition(".")
    return message_id(int(origin), int(seq))
