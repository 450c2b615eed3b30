"""Delporte-Gallet and Fauconnier's atomic multicast (D&F), without replication.

Source: Delporte-Gallet and Fauconnier 2000; algorithm 3.2 and section 3.1.2 of the DCC
dissertation (Louzada 2024), whose names are used here.

Assumes reliable channels, no failures, and a total order of the processes: their
numbers. Guarantees global total (acyclic) order, and is genuine. A message walks through
its k destinations from the lowest to the highest, and each handles no other message
until the last one's END: k steps to the last delivery and one more for END, 2(k-1)
messages among the destinations. The wait is the convoy effect.

Differs from the algorithm as printed: `wait until` becomes a queue of the messages that
came meanwhile, handled in the order of their arrival.
"""

from __future__ import annotations

from typing import ClassVar, final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer
from flexgroup.core.message import NO_MESSAGE, Message, MessageId, Packet


@final
class Forward(Packet):
    """(m), from the origin or from the previous destination."""

    m: Message


@final
class End(Packet):
    """(m.END), from the last destination."""

    m: MessageId


class DelporteFauconnier(Layer):
    __slots__ = ("queue", "waiting_for")

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.TOTAL})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Forward, End)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.waiting_for: MessageId = NO_MESSAGE
        """The message whose END this process waits for."""
        self.queue: list[Message] = []
        """What came while waiting."""

    def on_cast(self, m: Message) -> None:
        self.send((m.destinations[0],), Forward(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Forward) and self.is_for_me(packet.m):
            if self.waiting_for == NO_MESSAGE:
                self.handle(packet.m)
            else:
                self.queue.append(packet.m)
        elif isinstance(packet, End) and packet.m == self.waiting_for:
            self.on_end()
        else:
            raise self.refuse(sender, packet)

    def handle(self, m: Message) -> None:
        """Lines 4 to 9 of the algorithm."""
        self.deliver(m)
        if self.process == m.destinations[-1]:
            if len(m.destinations) > 1:
                self.send(m.destinations[:-1], End(m.id))
        else:
            following = m.destinations[m.destinations.index(self.process) + 1]
            self.send((following,), Forward(m))
            self.waiting_for = m.id

    def on_end(self) -> None:
        self.waiting_for = NO_MESSAGE
        while self.queue and self.waiting_for == NO_MESSAGE:
            self.handle(self.queue.pop(0))
