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
from flexgroup.core.message import Message, MessageId, Packet
from flexgroup.protocols.parts.hypercube import cluster, dimension
from flexgroup.protocols.parts.known_messages import KnownMessages
from flexgroup.protocols.parts.senders import Enter, is_of_client, is_of_members
from flexgroup.protocols.parts.spanning_trees import SpanningTrees


@final
class Tree(Packet):
    """TREE(m)."""

    m: Message


@final
class Ack(Packet):
    """ACK(m): everybody in the sender's part of the tree has it."""

    m: MessageId


class VCubeBestEffort(Layer):
    __slots__ = ("delivered", "trees")

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Enter, Tree, Ack)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.delivered = KnownMessages()
        """The messages that this process has delivered, or would have as a destination."""
        self.trees = SpanningTrees(self.process, self.size)
        """What was sent on in the tree of each message, and is not confirmed."""

    def on_cast(self, m: Message) -> None:
        if self.process < self.size:
            self.broadcast(m)
        else:
            self.send(m.destinations[:1], Enter(m))

    def broadcast(self, m: Message) -> None:
        self.deliver_once(m)
        self.trees.forward(self, self.process, dimension(self.size), (m.id,), Tree(m))

    def deliver_once(self, m: Message) -> None:
        if self.delivered.has(m.id):
            return
        self.delivered.add(m.id)
        if self.process in m.destinations:
            self.deliver(m)

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Ack):
            self.on_ack(sender, packet)
        elif isinstance(packet, Tree) and is_of_members(self, sender, packet.m):
            self.on_tree(sender, packet.m)
        elif isinstance(packet, Enter) and self.is_request(sender, packet.m):
            self.broadcast(packet.m)
        else:
            raise self.refuse(sender, packet)

    def is_request(self, client: int, m: Message) -> bool:
        return is_of_client(self, client, m) and not self.delivered.has(m.id)

    # Lines 18 to 32.

    def on_tree(self, j: int, m: Message) -> None:
        if j in self.trees.crashed:
            return
        self.deliver_once(m)
        self.trees.forward(self, j, cluster(self.process, j) - 1, (m.id,), Tree(m))
        if self.trees.is_confirmed(j, (m.id,)):
            self.ack(j, m.id)

    # Lines 33 to 37, and 53 to 56.

    def on_ack(self, j: int, packet: Ack) -> None:
        if j in self.trees.crashed:
            return
        if (j, (packet.m,)) not in self.trees.pending_ack:
            raise self.refuse(j, packet)
        for source in self.trees.confirm(j, (packet.m,)):
            self.ack(source, packet.m)

    def ack(self, source: int, m: MessageId) -> None:
        if source != self.process and source not in self.trees.crashed:
            self.send((source,), Ack(m))

    # Lines 57 to 65.

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Suspect) and notice.process not in self.trees.crashed:
            for source, key in self.trees.crash(self, notice.process):
                self.ack(source, key[0])
        self.pass_on(notice)
