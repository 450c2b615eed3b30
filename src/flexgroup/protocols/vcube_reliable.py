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

from typing import ClassVar, final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Notice, Suspect
from flexgroup.core.message import Message, MessageId, Packet
from flexgroup.protocols.parts.hypercube import cluster, dimension
from flexgroup.protocols.parts.known_messages import KnownMessages
from flexgroup.protocols.parts.senders import Enter, is_of_client, is_of_members
from flexgroup.protocols.parts.spanning_trees import SpanningTrees
from flexgroup.protocols.parts.timestamps import FAR


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
    __slots__ = ("carried", "delivered", "kept", "number", "trees")

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Enter, Tree, Ack)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.delivered = KnownMessages()
        """The messages that this process has delivered, or would have as a destination."""
        self.trees = SpanningTrees(self.process, self.size)
        """What was sent on in the trees of carriers, and is not confirmed."""
        # Not in the paper.
        self.number = 0
        """How many messages this process has carried."""
        self.carried: dict[MessageId, int] = {}
        """Those of them that are not confirmed by all, and their numbers."""
        self.kept: dict[tuple[int, int], Message] = {}
        """Messages of other carriers that may not have reached all, by carrier and number."""

    def on_cast(self, m: Message) -> None:
        if self.process < self.size:
            self.broadcast(m)
        else:
            self.send(m.destinations[:1], Enter(m))

    def broadcast(self, m: Message) -> None:
        self.deliver_once(m)
        self.carry(m)

    def carry(self, m: Message) -> None:
        self.carried[m.id] = self.number
        tree = Tree(m, self.process, self.number, done=min(self.carried.values()))
        self.number += 1
        self.forward(self.process, dimension(self.size), tree)

    def deliver_once(self, m: Message) -> None:
        self.delivered.add(m.id)
        if self.process in m.destinations:
            self.deliver(m)

    # Lines 14 to 17.

    def forward(self, source: int, s: int, tree: Tree) -> None:
        key = (tree.m.id, tree.carrier)
        self.trees.forward(self, source, s, key, tree)
        if self.trees.is_confirmed(source, key):
            self.ack(source, tree.m.id, tree.carrier)

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
        others = tree.carrier < self.size and tree.carrier != self.process
        return is_of_members(self, j, tree.m) and others and tree.done <= tree.number < FAR

    def is_request(self, client: int, m: Message) -> bool:
        return is_of_client(self, client, m) and not self.delivered.has(m.id)

    # Lines 18 to 32.

    def on_tree(self, j: int, tree: Tree) -> None:
        if j in self.trees.crashed:
            return
        for carrier, number in sorted(self.kept):
            if carrier == tree.carrier and number < tree.done:
                del self.kept[carrier, number]
        if not self.delivered.has(tree.m.id):
            self.deliver_once(tree.m)
            if tree.carrier in self.trees.crashed:
                self.carry(tree.m)
            else:
                self.kept[tree.carrier, tree.number] = tree.m
        self.forward(j, cluster(self.process, j) - 1, tree)

    # Lines 33 to 37, and 53 to 56.

    def on_ack(self, j: int, packet: Ack) -> None:
        if j in self.trees.crashed:
            return
        key = (packet.m, packet.carrier)
        if (j, key) not in self.trees.pending_ack:
            raise self.refuse(j, packet)
        for source in self.trees.confirm(j, key):
            self.ack(source, packet.m, packet.carrier)

    def ack(self, source: int, m: MessageId, carrier: int) -> None:
        if source == self.process:
            del self.carried[m]
        elif source not in self.trees.crashed:
            self.send((source,), Ack(m, carrier))

    # Lines 57 to 65.

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Suspect) and notice.process not in self.trees.crashed:
            self.crash(notice.process)
        self.pass_on(notice)

    def crash(self, j: int) -> None:
        for source, (m, carrier) in self.trees.crash(self, j):
            self.ack(source, m, carrier)
        for carrier, number in sorted(self.kept):
            if carrier == j:
                self.carry(self.kept.pop((carrier, number)))
