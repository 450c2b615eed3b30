"""What atomic broadcasts by destination agreement keep of a message, and say after a crash.

They share it, and `flexgroup.protocols.destination_agreement` tells what it is for.
"""

from __future__ import annotations

from typing import ClassVar, Final, final

from flexgroup.core.layer import Record
from flexgroup.core.message import INTS, MESSAGE, Fields, Message, Packet

UNKNOWN: Final = -1

FAR: Final = 1 << 61
"""Above all messages and timestamps, and small enough to be compared fast."""


WORD_BITS: Final = 8
"""Processes in one bit mask. Python keeps all numbers of so many bits, and makes no new ones."""
WORD: Final = (1 << WORD_BITS) - 1


@final
class Request(Packet):
    """A client, which takes no part in the agreement, asks a destination to broadcast m."""

    __slots__ = ("m",)
    FIELDS: ClassVar[Fields] = (("m", MESSAGE),)

    def __init__(self, m: Message) -> None:
        self.m = m


@final
class Flush(Packet):
    """These crashed, and this is the highest timestamp I know of each message.

    `highest` is flat: a message and its timestamp, another message and its, ...
    """

    __slots__ = ("crashed", "highest")
    FIELDS: ClassVar[Fields] = (("crashed", INTS), ("highest", INTS))

    def __init__(self, crashed: tuple[int, ...], highest: tuple[int, ...]) -> None:
        self.crashed = crashed
        self.highest = highest


@final
class Agreed(Packet):
    """These crashed, and this is the highest timestamp that any of the others knows."""

    __slots__ = ("crashed", "highest")
    FIELDS: ClassVar[Fields] = (("crashed", INTS), ("highest", INTS))

    def __init__(self, crashed: tuple[int, ...], highest: tuple[int, ...]) -> None:
        self.crashed = crashed
        self.highest = highest


@final
class Received(Record):
    """A message that is not delivered yet: in received(i) or, with an sn, in stamped(i)."""

    __slots__ = ("highest", "m", "missing", "pending", "sn", "unheard")

    def __init__(self, m: Message, others: int, highest: int) -> None:
        self.m = m
        self.missing = others.bit_count()
        """How many timestamps are missing."""
        self.unheard = [others >> at & WORD for at in range(0, others.bit_length(), WORD_BITS)]
        """Whose they are, as bit masks of WORD_BITS processes each: one of all of them, which may
        be a thousand, would be copied with each timestamp."""
        self.highest = highest
        """The highest timestamp that is known."""
        self.pending = 0
        """Which confirmations about this message are awaited, as the protocol counts them."""
        self.sn = UNKNOWN

    def copy(self) -> Received:
        twin = Received(self.m, 0, self.highest)
        twin.missing = self.missing
        twin.unheard = self.unheard.copy()
        twin.pending = self.pending
        twin.sn = self.sn
        return twin

    def hear(self, k: int, ts: int) -> None:
        """Take note of the timestamp of process k."""
        word, bit = k // WORD_BITS, 1 << (k % WORD_BITS)
        if word < len(self.unheard) and self.unheard[word] & bit:
            self.unheard[word] ^= bit
            self.missing -= 1
        if ts > self.highest:
            self.highest = ts

    def expect(self, others: int) -> None:
        """Wait for the timestamps of nobody else any more."""
        self.missing = 0
        for word, unheard in enumerate(self.unheard):
            self.unheard[word] = unheard & others >> word * WORD_BITS
            self.missing += self.unheard[word].bit_count()
