"""Best-effort broadcast over VCube's spanning trees.

Source: Rodrigues, Arantes and Duarte 2014, "an autonomic implementation of reliable broadcast
based on dynamic spanning trees", the best-effort part, as Ruchel and others 2021 recall it;
TREE, ACK and line numbers are those of the latter's algorithm 1. The source
sends to one process of each of its log2(n) clusters, and each of those to one of each cluster
below. Who has confirmations from all it sent to confirms to where it came from. If a process
crashes, whoever waits for its confirmation sends to the next of its cluster.

Assumes reliable channels, which may reorder, and a perfect failure detector. Guarantees that what
a process multicasts that does not crash is delivered once by every destination that does not
crash. No order. Not genuine: messages pass through every process; only destinations deliver.
"""

from __future__ import annotations

from typing import ClassVar, final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Notice, Suspect
from flexgroup.core.message import Message, MessageId, Packet, origin_of
from flexgroup.protocols.parts.hypercube import (
    NOBODY,
    cluster,
    dimension,
    ff_neighbor,
    neighborhood,
)
from flexgroup.protocols.parts.known_messages import KnownMessages


@final
class Enter(Packet):
    """A client, which is not in the cube, asks a destination to broadcast m."""

    m: Message


@final
class Tree(Packet):
    """TREE(m)."""

    m: Message


@final
class Ack(Packet):
    """ACK(m): everybody in the sender's part of the tree has it."""

    m: MessageId


class VCubeBestEffort(Layer):
    __slots__ = ("awaited", "crashed", "delivered", "pending_ack")

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Enter, Tree, Ack)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.crashed: set[int] = set()
        """The processes that are not in correct(i)."""
        self.delivered = KnownMessages()
        """The messages that this process has delivered, or would have as a destination."""
        self.pending_ack: dict[tuple[int, MessageId], tuple[Message, tuple[int, ...]]] = {}
        """What went to p and is not confirmed, and from whom it came."""
        self.awaited: dict[tuple[int, MessageId], int] = {}
        """How much of what came from a source and went on is not confirmed."""

    def on_cast(self, m: Message) -> None:
        if self.process < self.size:
            self.broadcast(m)
        else:
            self.send(m.destinations[:1], Enter(m))

    def broadcast(self, m: Message) -> None:
        self.deliver_once(m)
        self.forward(self.process, dimension(self.size), m)

    def deliver_once(self, m: Message) -> None:
        if self.delivered.has(m.id):
            return
        self.delivered.add(m.id)
        if self.process in m.destinations:
            self.deliver(m)

    # Lines 14 to 17.

    def forward(self, source: int, s: int, m: Message) -> None:
        for p in neighborhood(self.process, 1, s, self.size, self.crashed):
            self.send_tree(source, p, m)

    def send_tree(self, source: int, p: int, m: Message) -> None:
        unconfirmed = self.pending_ack.get((p, m.id))
        if unconfirmed is None:
            self.send((p,), Tree(m))
            self.pending_ack[p, m.id] = (m, (source,))
        elif source in unconfirmed[1]:
            return
        else:
            self.pending_ack[p, m.id] = (m, (*unconfirmed[1], source))
        self.awaited[source, m.id] = self.awaited.get((source, m.id), 0) + 1

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Ack):
            self.on_ack(sender, packet)
        elif isinstance(packet, Tree) and self.is_tree(sender, packet.m):
            self.on_tree(sender, packet.m)
        elif isinstance(packet, Enter) and self.is_request(sender, packet.m):
            self.broadcast(packet.m)
        else:
            raise self.refuse(sender, packet)

    def is_tree(self, j: int, m: Message) -> bool:
        to = m.destinations
        return j < self.size and j != self.process and len(to) > 0 and to[-1] < self.size

    def is_request(self, client: int, m: Message) -> bool:
        ours = client >= self.size and client == origin_of(m.id) and self.is_for_me(m)
        return ours and not self.delivered.has(m.id)

    # Lines 18 to 32.

    def on_tree(self, j: int, m: Message) -> None:
        if j in self.crashed:
            return
        self.deliver_once(m)
        self.forward(j, cluster(self.process, j) - 1, m)
        self.check_acks(j, m.id)

    # Lines 33 to 37, and 53 to 56.

    def on_ack(self, j: int, packet: Ack) -> None:
        if j in self.crashed:
            return
        unconfirmed = self.pending_ack.pop((j, packet.m), None)
        if unconfirmed is None:
            raise self.refuse(j, packet)
        self.confirm(unconfirmed[1], packet.m)

    def confirm(self, sources: tuple[int, ...], m: MessageId) -> None:
        """One of those to whom m went from these sources is done with, or gone."""
        for source in sources:
            self.awaited[source, m] -= 1
            self.check_acks(source, m)

    def check_acks(self, source: int, m: MessageId) -> None:
        if self.awaited.get((source, m), 0):
            return
        self.awaited.pop((source, m), None)
        if source != self.process and source not in self.crashed:
            self.send((source,), Ack(m))

    # Lines 57 to 65.

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Suspect) and notice.process not in self.crashed:
            self.crash(notice.process)
        self.pass_on(notice)

    def crash(self, j: int) -> None:
        self.crashed.add(j)
        k = ff_neighbor(self.process, cluster(self.process, j), self.size, self.crashed)
        for p, m in sorted(self.pending_ack):
            if p == j:
                message, sources = self.pending_ack.pop((j, m))
                if k != NOBODY:
                    for source in sources:
                        self.send_tree(source, k, message)
                self.confirm(sources, m)
