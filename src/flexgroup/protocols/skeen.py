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
- `pending` keeps in order what lines 17 and 18 search for, and what is delivered is
  forgotten, so the set `del` is not needed.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import ClassVar, final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Record
from flexgroup.core.message import Message, MessageId, Packet, Stamp, clock_of, stamp


@final
class Start(Packet):
    """(START, m)."""

    m: Message


@final
class LocalTs(Packet):
    """(LOCAL-TS, m, ts)."""

    m: MessageId
    ts: Stamp


@final
class Undecided(Record):
    """What is known of a message that has no final timestamp yet."""

    m: Message | None = None
    """None if a LOCAL-TS overtook START."""
    local: Stamp = 0
    received: int = 0
    """How many LOCAL-TS came."""
    highest: Stamp = 0
    """The highest timestamp in them."""


class Skeen(Layer):
    __slots__ = ("clock", "final", "pending", "undecided")

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.TOTAL})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Start, LocalTs)
    RECORDS: ClassVar[tuple[type[Record], ...]] = (Undecided,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.clock = 0
        self.undecided: dict[MessageId, Undecided] = {}
        """Holds local[m]."""
        self.final: dict[Stamp, Message] = {}
        """The message of each final timestamp; no two messages have the same."""
        self.pending: list[Stamp] = []
        """The final timestamp of each undelivered message or, while unknown, the local one."""

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Start(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, LocalTs):
            self.on_local_ts(packet.m, packet.ts)
        elif isinstance(packet, Start) and self.is_for_me(packet.m):
            self.on_start_of(sender, packet)
        else:
            raise self.refuse(sender, packet)

    def on_start_of(self, sender: int, packet: Start) -> None:
        m = packet.m
        known = self.undecided.get(m.id)
        if known is None:
            known = self.undecided[m.id] = Undecided()
        elif known.m is not None:
            raise self.refuse(sender, packet)
        self.clock += 1
        known.m = m
        known.local = stamp(self.clock, self.process)
        insort(self.pending, known.local)
        self.send(m.destinations, LocalTs(m.id, known.local))

    def on_local_ts(self, m: MessageId, ts: Stamp) -> None:
        known = self.undecided.get(m)
        if known is None:
            known = self.undecided[m] = Undecided()
        known.received += 1
        if ts > known.highest:
            known.highest = ts
        message = known.m
        if message is not None and known.received == len(message.destinations):
            self.on_all_local_ts(message, known)

    def on_all_local_ts(self, m: Message, known: Undecided) -> None:
        """LOCAL-TS came from all destinations of m."""
        final = known.highest
        del self.undecided[m.id]
        self.final[final] = m
        if clock_of(final) > self.clock:
            self.clock = clock_of(final)
        if final != known.local:
            del self.pending[bisect_left(self.pending, known.local)]
            insort(self.pending, final)
        self.try_deliver()

    def try_deliver(self) -> None:
        """Deliver in order of final timestamps while nothing undelivered can precede."""
        delivered = 0
        for ts in self.pending:
            m = self.final.get(ts)
            if m is None:
                break
            del self.final[ts]
            self.deliver(m)
            delivered += 1
        if delivered:
            del self.pending[:delivered]
