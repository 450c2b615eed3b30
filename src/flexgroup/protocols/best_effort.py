"""Best-effort multicast: send to every destination, deliver what arrives.

Source: folklore; Cachin, Guerraoui and Rodrigues 2011, section 3.2, gives it as
"best-effort broadcast". It is the floor that every other protocol is measured
against, and the smallest complete example of a layer.

Assumes nothing. Guarantees no order; it is as reliable as what is below.
"""

from __future__ import annotations

from typing import ClassVar, final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Layer
from flexgroup.core.message import Message, Packet


@final
class Data(Packet):
    """(DATA, m)."""

    m: Message


class BestEffort(Layer):
    __slots__ = ()

    KEEPS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.FIFO})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Data,)

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Data(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if not isinstance(packet, Data) or not self.is_for_me(packet.m):
            raise self.refuse(sender, packet)
        self.deliver(packet.m)
