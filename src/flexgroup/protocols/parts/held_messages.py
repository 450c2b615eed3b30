"""The messages that a process has and has not delivered, and which it has delivered."""

from __future__ import annotations

from flexgroup.core.layer import Context, Layer
from flexgroup.core.message import Message, MessageId, Packet
from flexgroup.protocols.parts.epochs import Batch, Copy
from flexgroup.protocols.parts.known_messages import is_known, make_known


class HeldMessages(Layer):
    """Part of `flexgroup.protocols.parts.majority_agreement`."""

    __slots__ = ("ahead", "last", "own", "pending", "shared")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.pending: dict[MessageId, Message] = {}
        """Messages that this process has and has not delivered."""
        self.own: set[MessageId] = set()
        """Those among them that this process broadcast."""
        self.shared: set[MessageId] = set()
        """Those among them that this process has sent to all."""
        self.last: dict[int, int] = {}
        """How many messages of each source, from its first on, are delivered without a gap."""
        self.ahead: set[MessageId] = set()
        """Delivered while an earlier message of the same source is not."""

    def share(self, m: Message) -> None:
        if m.id not in self.shared:
            self.shared.add(m.id)
            self.tell_others(Copy(m))

    def tell_others(self, packet: Packet) -> None:
        if self.size > 1:
            self.send(tuple([j for j in range(self.size) if j != self.process]), packet)

    def is_delivered(self, m: MessageId) -> bool:
        return is_known(m, self.last, self.ahead)

    def has(self, batch: Batch) -> bool:
        return all(m in self.pending or self.is_delivered(m) for m in batch)

    def deliver_once(self, m: MessageId) -> None:
        message = self.pending.pop(m)
        self.own.discard(m)
        self.shared.discard(m)
        make_known(m, self.last, self.ahead)
        if self.process in message.destinations:
            self.deliver(message)
