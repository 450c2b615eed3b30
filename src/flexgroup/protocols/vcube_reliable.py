"""Reliable broadcast over VCube's spanning trees.

Source: Rodrigues, Arantes and Duarte 2014, "an autonomic implementation of reliable broadcast
based on dynamic spanning trees", as Ruchel and others 2021 recall it; TREE, ACK and line
numbers are those of the latter's algorithm 1. A message travels in the tree of a process, its
*carrier*: the source at first. Whoever confirms has confirmations from all it sent to. If a
process crashes, whoever waits for its confirmation sends to the next of its cluster; and who has
a message whose carrier crashed becomes its carrier.

Assumes reliable channels, which may reorder, and a perfect failure detector. Guarantees that all
processes that do not crash deliver the same messages, each once, and those of correct processes
for sure. No order. Not genuine: messages pass through every process; only destinations deliver.

Differs from the paper, in which a source waits until its last message is confirmed before it
sends another, so that one message of each source is enough to keep: here TREE says up to which
number its carrier's messages are confirmed by all, and the others are kept.
"""

from __future__ import annotations

from typing import ClassVar, Final, final

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

FAR: Final = 1 << 60
"""A number above those of all messages."""


@final
class Enter(Packet):
    """A client, which is not in the cube, asks a destination to broadcast m."""

    m: Message


@final
class Tree(Packet):
    """TREE(m), the carrier's message of this number; those before `done` have reached all."""

    m: Message
    carrier: int
    number: int
    done: int


@final
class Ack(Packet):
    """ACK(m), in the tree of this carrier: everybody in the sender's part of it has m."""

    m: MessageId
    carrier: int


class VCubeReliable(Layer):
    __slots__ = (
        "awaited", "crashed", "delivered", "done", "kept", "number", "pending_ack",
    )  # fmt: skip

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Enter, Tree, Ack)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.crashed: set[int] = set()
        """The processes that are not in correct(i)."""
        self.delivered = KnownMessages()
        """The messages that this process has delivered, or would have as a destination."""
        self.pending_ack: dict[tuple[int, MessageId, int], tuple[Tree, tuple[int, ...]]] = {}
        """What went to p in the tree of a carrier and is not confirmed, and from whom it came."""
        self.awaited: dict[tuple[int, MessageId, int], int] = {}
        """How much of what came from a source and went on is not confirmed."""
        # Not in the paper.
        self.number = 0
        """How many messages this process has carried."""
        self.done = 0
        """How many of them, from the first on, are confirmed by all."""
        self.kept: dict[tuple[int, int], Message] = {}
        """Messages that may not have reached all, by carrier and number."""

    def on_cast(self, m: Message) -> None:
        if self.process < self.size:
            self.broadcast(m)
        else:
            self.send(m.destinations[:1], Enter(m))

    def broadcast(self, m: Message) -> None:
        self.deliver_once(m)
        self.carry(m)

    def carry(self, m: Message) -> None:
        tree = Tree(m, self.process, self.number, self.done)
        self.kept[self.process, self.number] = m
        self.number += 1
        self.forward(self.process, dimension(self.size), tree)
        self.check_acks(self.process, tree)

    def deliver_once(self, m: Message) -> None:
        self.delivered.add(m.id)
        if self.process in m.destinations:
            self.deliver(m)

    # Lines 14 to 17.

    def forward(self, source: int, s: int, tree: Tree) -> None:
        for p in neighborhood(self.process, 1, s, self.size, self.crashed):
            self.send_tree(source, p, tree)

    def send_tree(self, source: int, p: int, tree: Tree) -> None:
        m, carrier = tree.m.id, tree.carrier
        unconfirmed = self.pending_ack.get((p, m, carrier))
        if unconfirmed is None:
            self.send((p,), tree)
            self.pending_ack[p, m, carrier] = (tree, (source,))
        elif source in unconfirmed[1]:
            return
        else:
            self.pending_ack[p, m, carrier] = (tree, (*unconfirmed[1], source))
        self.awaited[source, m, carrier] = self.awaited.get((source, m, carrier), 0) + 1

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Ack):
            self.on_ack(sender, packet)
        elif isinstance(packet, Tree) and self.is_tree(sender, packet):
            self.on_tree(sender, packet)
        elif isinstance(packet, Enter) and self.is_request(sender, packet.m):
            self.broadcast(packet.m)
        else:
            raise self.refuse(sender, packet)

    def is_tree(self, j: int, tree: Tree) -> bool:
        to = tree.m.destinations
        if j >= self.size or j == self.process or not to or to[-1] >= self.size:
            return False
        others = tree.carrier < self.size and tree.carrier != self.process
        return others and tree.done <= tree.number < FAR

    def is_request(self, client: int, m: Message) -> bool:
        ours = client >= self.size and client == origin_of(m.id) and self.is_for_me(m)
        return ours and not self.delivered.has(m.id)

    # Lines 18 to 32.

    def on_tree(self, j: int, tree: Tree) -> None:
        if j in self.crashed:
            return
        for carrier, number in sorted(self.kept):
            if carrier == tree.carrier and number < tree.done:
                del self.kept[carrier, number]
        if not self.delivered.has(tree.m.id):
            self.deliver_once(tree.m)
            if tree.carrier in self.crashed:
                self.carry(tree.m)
            else:
                self.kept[tree.carrier, tree.number] = tree.m
        self.forward(j, cluster(self.process, j) - 1, tree)
        self.check_acks(j, tree)

    # Lines 33 to 37, and 53 to 56.

    def on_ack(self, j: int, packet: Ack) -> None:
        if j in self.crashed:
            return
        unconfirmed = self.pending_ack.pop((j, packet.m, packet.carrier), None)
        if unconfirmed is None:
            raise self.refuse(j, packet)
        self.confirm(*unconfirmed)

    def confirm(self, tree: Tree, sources: tuple[int, ...]) -> None:
        """One of those to whom this went from these sources is done with, or gone."""
        for source in sources:
            self.awaited[source, tree.m.id, tree.carrier] -= 1
            self.check_acks(source, tree)

    def check_acks(self, source: int, tree: Tree) -> None:
        if self.awaited.get((source, tree.m.id, tree.carrier), 0):
            return
        self.awaited.pop((source, tree.m.id, tree.carrier), None)
        if source == self.process:
            self.kept.pop((self.process, tree.number), None)
            while self.done < self.number and (self.process, self.done) not in self.kept:
                self.done += 1
        elif source not in self.crashed:
            self.send((source,), Ack(tree.m.id, tree.carrier))

    # Lines 57 to 65.

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Suspect) and notice.process not in self.crashed:
            self.crash(notice.process)
        self.pass_on(notice)

    def crash(self, j: int) -> None:
        self.crashed.add(j)
        k = ff_neighbor(self.process, cluster(self.process, j), self.size, self.crashed)
        for p, m, carrier in sorted(self.pending_ack):
            if p == j:
                tree, sources = self.pending_ack.pop((p, m, carrier))
                if k != NOBODY:
                    for source in sources:
                        self.send_tree(source, k, tree)
                self.confirm(tree, sources)
        for carrier, number in sorted(self.kept):
            if carrier == j:
                self.carry(self.kept.pop((carrier, number)))
