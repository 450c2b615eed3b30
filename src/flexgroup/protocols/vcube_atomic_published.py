"""Atomic broadcast over VCube's spanning trees, as published: crashes break order and agreement.

Source: algorithm 1 of Ruchel and others 2021, whose names and lines are used here. `vcube-atomic`
is the corrected form; docs/findings.md shows a shortest run in which this one goes wrong.

Assumes reliable channels, crashes without recovery, and a perfect failure detector. Without
crashes it guarantees total order and agreement. Not genuine: every process takes part in every
broadcast, and only destinations deliver.

Read as it must be meant where it cannot be meant as printed; as printed, nothing is delivered:
- `from` in line 17, which FORWARD is not told, is who sent TREE, or this process.
- ACK names T as it came, not with the timestamp added in line 24: the sender waits for that.
- Line 55 asks whether p is this process, not whether the message is: p0 has to confirm timestamps
  of its own message, too.
- Line 62 sends to k. An ACK for which line 34 finds nothing is the second for what went twice.
- A message leaves received(i) (line 45) when it enters stamped(i) (line 47), whatever its number:
  in line 49 it would wait for itself, and one that line 43 keeps would hold up all others for ever.
- Messages of one source with equal sn go by their numbers (line 51).
Not in the paper: clients, and messages that are not for all.
"""

from __future__ import annotations

from typing import ClassVar, final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Notice, Record, Suspect
from flexgroup.core.message import Message, MessageId, Packet, origin_of, seq_of
from flexgroup.protocols.parts.hypercube import (
    NOBODY,
    cluster,
    dimension,
    ff_neighbor,
    neighborhood,
)
from flexgroup.protocols.parts.senders import Request, is_of_client, is_of_members
from flexgroup.protocols.parts.timestamps import FAR, Timestamps, are_timestamps


@final
class Tree(Packet):
    """TREE(m, T)."""

    m: Message
    T: Timestamps


@final
class Ack(Packet):
    """ACK(m, T)."""

    m: MessageId
    T: Timestamps


@final
class TimestampsOf(Record):
    """The entries of received(i) for one message."""

    m: Message
    senders: int = 0
    """Whose timestamps are there, as a bit mask."""
    highest: int = 0
    lowest: int = FAR
    pending: int = 0
    """How many entries of pending_ack(i) are about m."""

    def add(self, k: int, ts: int) -> None:
        self.senders |= 1 << k
        self.highest = max(self.highest, ts)
        self.lowest = min(self.lowest, ts)


class VCubeAtomicPublished(Layer):
    __slots__ = ("LC", "TS", "awaited", "crashed", "last", "pending_ack", "received", "stamped")

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.TOTAL})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Request, Tree, Ack)

    # Lines 1 to 6.

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.LC = 0
        self.TS = 0
        self.crashed: set[int] = set()
        """The processes that are not in correct(i)."""
        self.last: dict[int, int] = {}
        self.pending_ack: dict[tuple[int, MessageId, Timestamps], tuple[Message, int]] = {}
        """What went to p as (m, T), and from whom it came."""
        self.awaited: dict[tuple[int, MessageId, Timestamps], int] = {}
        """How many entries of pending_ack there are from x with (m, T)."""
        self.received: dict[MessageId, TimestampsOf] = {}
        self.stamped: dict[MessageId, tuple[int, Message]] = {}

    # Lines 7 to 13.

    def on_cast(self, m: Message) -> None:
        if self.process < self.size:
            self.a_broadcast(m)
        else:
            self.send(m.destinations[:1], Request(m))

    def a_broadcast(self, m: Message) -> None:
        own = (self.process, self.TS)
        self.LC += 1
        self.TS = max(self.TS, self.LC)
        self.received[m.id] = TimestampsOf(m)
        self.received[m.id].add(*own)
        self.forward(self.process, 1, dimension(self.size), m, own)
        self.check_deliverable(m.id)

    # Lines 14 to 17.

    def forward(self, source: int, low: int, high: int, m: Message, T: Timestamps) -> None:
        for p in neighborhood(self.process, low, high, self.size, self.crashed):
            self.send_tree(source, p, m, T)

    def send_tree(self, source: int, p: int, m: Message, T: Timestamps) -> None:
        self.send((p,), Tree(m, T))
        if (p, m.id, T) in self.pending_ack:
            return
        self.pending_ack[p, m.id, T] = (m, source)
        self.awaited[source, m.id, T] = self.awaited.get((source, m.id, T), 0) + 1
        if m.id in self.received:
            self.received[m.id].pending += 1

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Ack):
            self.on_ack(sender, packet)
        elif isinstance(packet, Tree) and self.is_tree(sender, packet):
            self.on_tree(sender, packet.m, packet.T)
        elif isinstance(packet, Request) and self.is_request(sender, packet.m):
            self.a_broadcast(packet.m)
        else:
            raise self.refuse(sender, packet)

    def is_request(self, client: int, m: Message) -> bool:
        return is_of_client(self, client, m) and self.is_new(m.id)

    def is_tree(self, j: int, packet: Tree) -> bool:
        return is_of_members(self, j, packet.m) and are_timestamps(packet.T, self.size)

    def is_new(self, m: MessageId) -> bool:
        """The condition in line 22."""
        unseen = m not in self.received and m not in self.stamped
        return unseen and seq_of(m) > self.last.get(origin_of(m), -1)

    # Lines 18 to 32.

    def on_tree(self, j: int, m: Message, T: Timestamps) -> None:
        if j in self.crashed:
            return
        level = cluster(self.process, j) - 1
        self.TS = max(self.TS + 1, max(T[1::2]))
        if self.is_new(m.id):
            own = (self.process, self.TS)
            T = T + own
            self.received[m.id] = TimestampsOf(m)
            self.forward(self.process, level + 1, dimension(self.size), m, own)
        if m.id in self.received:
            for at in range(0, len(T), 2):
                self.received[m.id].add(T[at], T[at + 1])
        self.forward(j, 1, level, m, T)
        self.check_deliverable(m.id)
        self.check_acks(j, m.id, T)

    # Lines 33 to 37.

    def on_ack(self, j: int, packet: Ack) -> None:
        if (j, packet.m, packet.T) in self.pending_ack:
            self.remove(j, packet.m, packet.T)

    def remove(self, j: int, m: MessageId, T: Timestamps) -> None:
        _, source = self.pending_ack.pop((j, m, T))
        self.awaited[source, m, T] -= 1
        if m in self.received:
            self.received[m].pending -= 1
        self.check_deliverable(m)
        self.check_acks(source, m, T)

    # Lines 38 to 52.

    def check_deliverable(self, m: MessageId) -> None:
        known = self.received.get(m)
        if known is None or known.pending or not self.has_all(known):
            return
        if seq_of(m) == self.last.get(origin_of(m), -1) + 1:
            self.last[origin_of(m)] = seq_of(m)
        del self.received[m]
        self.deliver_stamped(known)

    def has_all(self, known: TimestampsOf) -> bool:
        """A timestamp of every process in correct(i)."""
        correct = (1 << self.size) - 1
        for j in self.crashed:
            correct &= ~(1 << j)
        return correct & ~known.senders == 0

    def deliver_stamped(self, known: TimestampsOf) -> None:
        self.stamped[known.m.id] = (known.highest, known.m)
        lowest = min([other.lowest for other in self.received.values()], default=FAR)
        deliverable = [
            (sn, origin_of(m), seq_of(m)) for m, (sn, _) in self.stamped.items() if sn < lowest
        ]
        named = {(origin_of(m), seq_of(m)): m for m in self.stamped}
        for _, src, seq in sorted(deliverable):
            _, m = self.stamped.pop(named[src, seq])
            if self.process in m.destinations:
                self.deliver(m)

    # Lines 53 to 56.

    def check_acks(self, source: int, m: MessageId, T: Timestamps) -> None:
        if self.awaited.get((source, m, T), 0):
            return
        self.awaited.pop((source, m, T), None)
        if source != self.process and source not in self.crashed:
            came = T[:-2] if T[-2] == self.process else T
            self.send((source,), Ack(m, came))

    # Lines 57 to 67.

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Suspect) and notice.process not in self.crashed:
            self.crash(notice.process)
        self.pass_on(notice)

    def crash(self, j: int) -> None:
        self.crashed.add(j)
        for p, m, T in sorted(self.pending_ack):
            if p != j:
                continue
            message, source = self.pending_ack[p, m, T]
            k = ff_neighbor(self.process, cluster(self.process, j), self.size, self.crashed)
            if source not in self.crashed and k != NOBODY:
                self.send_tree(source, k, message, T)
            self.remove(j, m, T)
        for m in sorted(self.received):
            self.check_deliverable(m)
