"""The packets and records of xAMP's atomic multicast."""

from __future__ import annotations

from typing import ClassVar, Final, final

from flexgroup.core.layer import Record
from flexgroup.core.message import (
    ID,
    INT,
    INTS,
    MESSAGE,
    STAMP,
    Fields,
    Message,
    MessageId,
    Packet,
    Stamp,
)

# What a receiver tells the monitor of a message.
UNKNOWN: Final = 0
NOT_ACCEPTED: Final = 1
ACCEPTED: Final = 2
REJECTED: Final = 3


NOWHERE: Final = 0
"""The place of what is rejected."""


@final
class Data(Packet):
    """m, for the attempt-th time."""

    __slots__ = ("attempt", "m")
    FIELDS: ClassVar[Fields] = (("m", MESSAGE), ("attempt", INT))

    def __init__(self, m: Message, attempt: int) -> None:
        self.m = m
        self.attempt = attempt


@final
class Response(Packet):
    """This try of m is in my queue, at this place."""

    __slots__ = ("attempt", "m", "place")
    FIELDS: ClassVar[Fields] = (("m", ID), ("attempt", INT), ("place", STAMP))

    def __init__(self, m: MessageId, attempt: int, place: Stamp) -> None:
        self.m = m
        self.attempt = attempt
        self.place = place


@final
class Accept(Packet):
    """The decision: m is delivered, at this place of the queue."""

    __slots__ = ("m", "place")
    FIELDS: ClassVar[Fields] = (("m", ID), ("place", STAMP))

    def __init__(self, m: MessageId, place: Stamp) -> None:
        self.m = m
        self.place = place


@final
class Reject(Packet):
    """The decision: m is discarded."""

    __slots__ = ("m",)
    FIELDS: ClassVar[Fields] = (("m", ID),)

    def __init__(self, m: MessageId) -> None:
        self.m = m


@final
class RequestDecision(Packet):
    """I have no decision on m, which went to these processes."""

    __slots__ = ("destinations", "m")
    FIELDS: ClassVar[Fields] = (("m", ID), ("destinations", INTS))

    def __init__(self, m: MessageId, destinations: tuple[int, ...]) -> None:
        self.m = m
        self.destinations = destinations


@final
class Inquiry(Packet):
    """The monitor asks what you know of m."""

    __slots__ = ("m",)
    FIELDS: ClassVar[Fields] = (("m", ID),)

    def __init__(self, m: MessageId) -> None:
        self.m = m


@final
class State(Packet):
    """What I know of m: see `UNKNOWN` and the others."""

    __slots__ = ("attempt", "m", "place", "state")
    FIELDS: ClassVar[Fields] = (("m", ID), ("state", INT), ("attempt", INT), ("place", STAMP))

    def __init__(self, m: MessageId, state: int, attempt: int, place: Stamp) -> None:
        self.m = m
        self.state = state
        self.attempt = attempt
        self.place = place


@final
class Entry(Record):
    """A message in the receive queue."""

    __slots__ = ("accepted", "attempt", "decider", "m", "place")

    def __init__(self, m: Message, attempt: int, place: Stamp, decider: int) -> None:
        self.m = m
        self.attempt = attempt
        self.place = place
        self.decider = decider
        """Whose decision counts: the sender's, or the monitor's that has asked."""
        self.accepted = False

    def copy(self) -> Entry:
        twin = Entry(self.m, self.attempt, self.place, self.decider)
        twin.accepted = self.accepted
        return twin


@final
class Inquest(Record):
    """What a monitor has found out about a message of a sender that failed."""

    __slots__ = ("destinations", "lacking", "states")

    def __init__(self, destinations: tuple[int, ...], lacking: tuple[int, ...]) -> None:
        self.destinations = destinations
        self.lacking = lacking
        """Whose answers are missing."""
        self.states: tuple[tuple[int, int, Stamp], ...] = ()
        """State, attempt and place, of those who answered."""

    def copy(self) -> Inquest:
        twin = Inquest(self.destinations, self.lacking)
        twin.states = self.states
        return twin

    def answered(self, sender: int, packet: State) -> None:
        self.states = (*self.states, (packet.state, packet.attempt, packet.place))
        self.lacking = tuple([p for p in self.lacking if p != sender])

    def conclusion(self) -> Stamp:
        """Accept what the sender may have accepted: what all have received in the same try."""
        accepted = [place for state, _, place in self.states if state == ACCEPTED]
        if accepted:
            return max(accepted)
        attempts = {attempt for _, attempt, _ in self.states}
        if len(attempts) == 1 and all(state == NOT_ACCEPTED for state, _, _ in self.states):
            return max([place for _, _, place in self.states])
        return NOWHERE
