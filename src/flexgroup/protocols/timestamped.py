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

    __slots__ = ("highest", "m", "missing", "pending", "sn")

    def __init__(self, m: Message, missing: int, highest: int) -> None:
        self.m = m
        self.missing = missing
        """Whose timestamps are missing, as a bit mask."""
        self.highest = highest
        """The highest timestamp that is known."""
        self.pending = 0
        """Which confirmations about this message are awaited, as the protocol counts them."""
        self.sn = UNKNOWN

    def copy(self) -> Received:
        twin = Received(self.m, self.missing, self.highest)
        twin.pending = self.pending
        twin.sn = self.sn
        return twin

    def hear(self, k: int, ts: int) -> None:
        """Take note of the timestamp of process k."""
        if self.missing >> k & 1:
            self.missing ^= 1 << k
        if ts > self.highest:
            self.highest = ts
