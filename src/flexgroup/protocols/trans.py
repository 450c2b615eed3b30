"""The packets of Trans, what can be told from their fields alone, and what came of an origin.

`flexgroup.protocols.reliable` says what they are for.
"""

from __future__ import annotations

from typing import ClassVar, Final, final

from mypy_extensions import mypyc_attr

from flexgroup.core.layer import Record
from flexgroup.core.message import (
    INT,
    INTS,
    MESSAGE,
    Fields,
    Message,
    MessageId,
    Packet,
    message_id,
    origin_of,
    seq_of,
)

Numbers = tuple[int, ...]

MOST: Final = 1 << 43
"""No process counts that far."""


@final
@mypyc_attr(acyclic=True)
class Data(Packet):
    """A message, and what its origin had to say to the destinations when it multicast it.

    `seq` is its number at the origin. `since` tells each destination how many numbers back the
    message before it was; 0 for the origin itself. `stable`, `acks` and `nacks` as in Null.
    """

    __slots__ = ("acks", "m", "nacks", "seq", "since", "stable")
    FIELDS: ClassVar[Fields] = (
        ("m", MESSAGE),
        ("seq", INT),
        ("since", INTS),
        ("stable", INT),
        ("acks", INTS),
        ("nacks", INTS),
    )

    def __init__(
        self, m: Message, seq: int, since: Numbers, stable: int, acks: Numbers, nacks: Numbers
    ) -> None:
        self.m = m
        self.seq = seq
        self.since = since
        self.stable = stable
        self.acks = acks
        self.nacks = nacks

    def since_at(self, process: int) -> int:
        """How many numbers back the message before it to this process was; 0 for nonsense."""
        destinations = self.m.destinations
        if len(self.since) != len(destinations):
            return 0
        for place, destination in enumerate(destinations):
            if destination == process:
                since = self.since[place]
                return since if since <= self.seq < MOST else 0
        return 0


@final
class Null(Packet):
    """The null message.

    `stable`: all destinations have the sender's messages up to this number. `acks`, pairs of
    origin and number: the sender has all that this origin sent it, up to there. `nacks`,
    triples of origin, low and high: it lacks what lies above low, up to high.
    """

    __slots__ = ("acks", "nacks", "stable")
    FIELDS: ClassVar[Fields] = (("stable", INT), ("acks", INTS), ("nacks", INTS))

    def __init__(self, stable: int, acks: Numbers, nacks: Numbers) -> None:
        self.stable = stable
        self.acks = acks
        self.nacks = nacks


@final
class Have(Packet):
    """I have this message; the answer to whoever sent it and is not its origin."""

    __slots__ = ("origin", "seq")
    FIELDS: ClassVar[Fields] = (("origin", INT), ("seq", INT))

    def __init__(self, origin: int, seq: int) -> None:
        self.origin = origin
        self.seq = seq


@final
class Origin(Record):
    """What came from an origin, up to the first gap."""

    __slots__ = ("have", "held", "released")

    def __init__(self, origin: int) -> None:
        self.have: MessageId = origin
        """The last message before the first gap."""
        self.released: MessageId = origin
        """The last message that was stable and is forgotten."""
        self.held: list[MessageId] = []
        """The messages between, in order."""

    @staticmethod
    def entry(origins: dict[int, Origin], origin: int) -> Origin:
        found = origins.get(origin)
        if found is None:
            found = origins[origin] = Origin(origin)
        return found

    def copy(self) -> Origin:
        twin = Origin(self.have)
        twin.released = self.released
        twin.held = list(self.held)
        return twin

    def release(
        self,
        stable: int,
        received_list: dict[MessageId, Data],
        had_by: dict[MessageId, tuple[int, ...]],
    ) -> None:
        """Forget what is stable or not in the received-list, up to the first that is neither."""
        count = 0
        for identity in self.held:
            if identity in received_list:
                if seq_of(identity) > stable:
                    break
                del received_list[identity]
                if had_by:
                    had_by.pop(identity, None)
            self.released = identity
            count += 1
        if count:
            del self.held[:count]


def makes_sense(packet: Data | Null, sender: int, process: int, sent: list[int]) -> bool:
    """It is a member's, and acknowledges to this process no more than was sent."""
    acks = packet.acks
    if sender >= len(sent) or sender == process:
        return False
    for place in range(0, len(acks) - 1, 2):
        if acks[place] == process and acks[place + 1] > sent[sender]:
            return False
    return len(acks) % 2 == 0 and len(packet.nacks) % 3 == 0


def gaps(origin: int, have: MessageId, after: dict[MessageId, MessageId], upto: int) -> Numbers:
    """What is missing of an origin's messages up to a number, as in the field `nacks`.

    All up to `have` came, and some beyond; `after` maps messages to what follows them.
    """
    found: list[int] = []
    early = [before for before in after if before > have and origin_of(before) == origin]
    for before in [*sorted(early), message_id(origin, upto)]:
        if before > have:
            found += (origin, seq_of(have), seq_of(before))
        have = max(have, after.get(before, have))
    return tuple(found)


def of_origin(received: dict[MessageId, Data], origin: int) -> list[MessageId]:
    return [identity for identity in sorted(received) if origin_of(identity) == origin]
