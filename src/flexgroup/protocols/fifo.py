"""FIFO order: what one process multicasts is delivered in the order it was multicast.

Source: Hadzilacos and Toueg 1994, section 4, by sequence numbers. Messages go to
subsets of the processes, so the sender numbers its messages per destination. All numbers go
to all destinations: for the layer below it is one message, which it may pass on.

Assumes reliable channels, which may reorder. Guarantees FIFO order between every pair
of processes, which makes it the layer to put under protocols that need FIFO channels.
"""

from __future__ import annotations

from typing import ClassVar, final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer
from flexgroup.core.message import Message, Packet


@final
class Numbered(Packet):
    """(DATA, m, numbers): which message of the sender to each of its destinations it is."""

    m: Message
    numbers: tuple[int, ...]


class Fifo(Layer):
    __slots__ = ("early", "next", "sent")

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.FIFO})
    # Over causal order nothing comes early, so nothing waits here.
    KEEPS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.CAUSAL})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Numbered,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.sent: dict[int, int] = {}
        """How many messages went to each destination."""
        self.next: dict[int, int] = {}
        """The number of the next message to deliver, per sender."""
        self.early: dict[tuple[int, int], Message] = {}
        """Messages that came before their turn, by (sender, number)."""

    def on_cast(self, m: Message) -> None:
        numbers = tuple([self.sent.get(destination, 0) for destination in m.destinations])
        for destination, number in zip(m.destinations, numbers, strict=True):
            self.sent[destination] = number + 1
        self.send(m.destinations, Numbered(m, numbers))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if not isinstance(packet, Numbered) or not self.is_for_me(packet.m):
            raise self.refuse(sender, packet)
        destinations = packet.m.destinations
        if len(packet.numbers) != len(destinations):
            raise self.refuse(sender, packet)
        number = packet.numbers[destinations.index(self.process)]
        turn = self.next.get(sender, 0)
        if number < turn:
            raise self.refuse(sender, packet)
        self.early[sender, number] = packet.m
        while (sender, turn) in self.early:
            self.deliver(self.early.pop((sender, turn)))
            turn += 1
        self.next[sender] = turn
