"""Transmission with response, the procedure that all qualities of service of xAMP are made of.

Source: Rodrigues and Veríssimo 1992; section 2.3.1 of the FlexGroup dissertation:
tr-w-resp([m], ord, send, Mr, Pr, nr). The parameters keep their names. `send` has no
attribute: a process that does not send the first time just waits.

Packets and bookkeeping: layers keep these records, send what is to be sent and set the timers.
"""

from __future__ import annotations

from typing import Final, final

from flexgroup.core.layer import Record
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
    numbers: tuple[int, ...]
    """Of m among the messages of its origin to each destination."""
    Pr: tuple[int, ...]
    """The processes of which responses are expected."""
    nr: int
    """How many responses are enough."""
    ord: bool = False
    """All must respond to the same try."""
    Mr: tuple[int, ...] = ()
    """The bag of responses: who responded."""
    attempt: int = 1

    def respond(self, process: int) -> None:
        if process in self.Pr and process not in self.Mr:
            self.Mr = tuple(sorted([*self.Mr, process]))

    def has_enough(self) -> bool:
        return len(self.Mr) >= min(self.nr, len(self.Pr))

    def try_again(self) -> tuple[int, ...]:
        """To whom to send again."""
        self.attempt += 1
        if self.ord:
            self.Mr = ()
        return tuple([process for process in self.Pr if process not in self.Mr])

    def leave_out(self, process: int) -> None:
        """No response is expected of a process that is suspected, nor would it count."""
        self.Pr = tuple([other for other in self.Pr if other != process])
        self.Mr = tuple([other for other in self.Mr if other != process])


@final
class Received(Record):
    """Which messages of an origin came, by number: repetitions are known by that."""

    next: int = 0
    """All below this one."""
    early: frozenset[int] = frozenset()
    """And these above it."""

    def has(self, number: int) -> bool:
        return number < self.next or number in self.early

    def add(self, number: int) -> None:
        self.early = self.early | {number}
        while self.next in self.early:
            self.early = self.early - {self.next}
            self.next += 1


def numbered(sent: dict[int, int], destinations: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers of the next message to these destinations; `sent` counts it."""
    numbers = tuple([sent.get(destination, 0) for destination in destinations])
    for destination, number in zip(destinations, numbers, strict=True):
        sent[destination] = number + 1
    return numbers


def number_at(process: int, m: Message, numbers: tuple[int, ...]) -> int:
    return numbers[m.destinations.index(process)]


def participants(origin: int, m: Message) -> tuple[int, ...]:
    """The origin and the destinations."""
    return tuple(sorted({origin, *m.destinations}))


def timer_of(m: MessageId) -> str:
    return name_of(m)


def message_of(timer: str) -> MessageId:
    origin, _, seq = timer.partition(".")
    return message_id(int(origin), int(seq))
