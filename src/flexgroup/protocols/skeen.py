"""Skeen's atomic multicast.

Source: D. Skeen, unpublished, described in Birman and Joseph 1987; algorithm 3.1 and
section 3.1.1 of the DCC dissertation (Louzada 2024), whose names are used here.

Assumes reliable channels, which need not be FIFO, and no failures. Guarantees global
total (acyclic) order, and is genuine: only the origin and the destinations of a message
take part. Two communication steps; k messages START and k^2 messages LOCAL-TS for k
destinations.

Differs from the algorithm as printed:
- Line 18 reads "there is an m'", with which a lone message would never be delivered;
  the text of section 3.1.1 says "all", and so does this code.
- LOCAL-TS carries the identity of m, not m: START brings m to every destination.
- `pending` keeps what lines 17 and 18 search for in order of timestamp.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import ClassVar, final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer
from flexgroup.core.message import (
    ID,
    MESSAGE,
    STAMP,
    Fields,
    Message,
    MessageId,
    Packet,
    Stamp,
    clock_of,
    stamp,
)


@final
class Start(Packet):
    """(START, m)."""

    __slots__ = ("m",)
    FIELDS: ClassVar[Fields] = (("m", MESSAGE),)

    def __init__(self, m: Message) -> None:
        self.m = m


@final
class LocalTs(Packet):
    """(LOCAL-TS, m, ts)."""

    __slots__ = ("m", "ts")
    FIELDS: ClassVar[Fields] = (("m", ID), ("ts", STAMP))

    def __init__(self, m: MessageId, ts: Stamp) -> None:
        self.m = m
        self.ts = ts


class Skeen(Layer):
    __slots__ = ("clock", "final", "local", "messages", "pending", "proposed")

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.TOTAL})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Start, LocalTs)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.clock = 0
        self.local: dict[MessageId, Stamp] = {}
        self.final: dict[MessageId, Stamp] = {}
        # Not in the paper: `local` and `final` lose a message when it is delivered, so
        # the set `del` is not needed.
        self.messages: dict[MessageId, Message] = {}
        self.proposed: dict[MessageId, tuple[Stamp, ...]] = {}
        """The timestamps received for a message that has no final one yet."""
        self.pending: list[tuple[Stamp, MessageId]] = []
        """Undelivered messages by final timestamp, or by local where final is unknown."""

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Start(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, LocalTs):
            self.on_local_ts(packet.m, packet.ts)
        elif isinstance(packet, Start) and self.is_new(packet.m):
            self.on_start_of(packet.m)
        else:
            raise self.refuse(sender, packet)

    def is_new(self, m: Message) -> bool:
        """Not in the paper: m is for this process, which has not heard of it yet."""
        return self.process in m.destinations and m.id not in self.messages

    def on_start_of(self, m: Message) -> None:
        self.clock += 1
        ts = stamp(self.clock, self.process)
        self.local[m.id] = ts
        self.messages[m.id] = m
        insort(self.pending, (ts, m.id))
        self.send(m.destinations, LocalTs(m.id, ts))

    def on_local_ts(self, m: MessageId, ts: Stamp) -> None:
        proposed = (*self.proposed.get(m, ()), ts)
        self.proposed[m] = proposed
        message = self.messages.get(m)
        if message is not None and len(proposed) == len(message.destinations):
            self.on_all_local_ts(m)

    def on_all_local_ts(self, m: MessageId) -> None:
        """LOCAL-TS came from all destinations of m."""
        final = max(self.proposed.pop(m))
        self.final[m] = final
        if clock_of(final) > self.clock:
            self.clock = clock_of(final)
        del self.pending[bisect_left(self.pending, (self.local[m], m))]
        insort(self.pending, (final, m))
        self.try_deliver()

    def try_deliver(self) -> None:
        """Deliver in order of final timestamps while nothing undelivered can precede."""
        while self.pending:
            m = self.pending[0][1]
            if m not in self.final:
                return
            del self.pending[0]
            del self.local[m]
            del self.final[m]
            self.deliver(self.messages.pop(m))
