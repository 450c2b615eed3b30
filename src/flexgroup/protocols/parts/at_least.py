"""The procedure of xAMP by which receivers repeat a message, too: atLeast, and reliable.

Source: Rodrigues and Veríssimo 1992; section 2.3.1.1 of the FlexGroup dissertation. Every receiver
runs tr-w-resp as well, without sending the first time: if responses are missing when its time is
up, it sends the message to those that are missing. So a message that one of them got reaches as
many as are waited for, even if the sender fails.
"""

from __future__ import annotations

from typing import final

from flexgroup.core.layer import Layer, Record
from flexgroup.core.message import Message, Packet, origin_of
from flexgroup.protocols.parts.known_messages import KnownMessages
from flexgroup.protocols.parts.tr_w_resp import (
    Data,
    Response,
    Transmission,
    Transmissions,
    numbered,
    numbered_at,
    participants,
)


@final
class AtLeast(Record):
    """One process's part in it. The layer that it belongs to sends and delivers for it."""

    nr: int
    """How many responses to wait for; 0 stands for those of all destinations."""
    sent: dict[int, int] = {}
    """How many messages went to each destination."""
    transmissions: Transmissions = Transmissions()
    received: KnownMessages = KnownMessages()
    """What came, by origin and number."""

    def cast(self, layer: Layer, m: Message) -> None:
        numbers = numbered(self.sent, m.destinations)
        if layer.process in m.destinations:
            layer.deliver(m)
        self.tr_w_resp(layer, m, numbers, send=True)

    def tr_w_resp(self, layer: Layer, m: Message, numbers: tuple[int, ...], send: bool) -> None:
        """The origin responds by sending, and I by calling this."""
        Pr = self.transmissions.expected(m.destinations)
        transmission = Transmission(m, Data(m, numbers), Pr, self.nr or len(m.destinations))
        transmission.respond(origin_of(m.id))
        transmission.respond(layer.process)
        self.transmissions.start(layer, transmission, send)

    def on_packet(self, layer: Layer, sender: int, packet: Packet) -> None:
        if isinstance(packet, Data):
            self.on_data(layer, sender, packet)
        elif isinstance(packet, Response):
            self.transmissions.on_response(layer, sender, packet.m)
        else:
            raise layer.refuse(sender, packet)

    def on_data(self, layer: Layer, sender: int, packet: Data) -> None:
        m = packet.m
        origin = origin_of(m.id)
        if not (
            0 <= sender < layer.size
            and 0 <= origin < layer.size
            and layer.is_for_me(m)
            and len(packet.numbers) == len(m.destinations)
        ):
            raise layer.refuse(sender, packet)
        number = numbered_at(layer.process, origin, m, packet.numbers)
        if origin == layer.process or self.received.has(number):
            layer.send((sender,), Response(m.id))
            return
        self.received.add(number)
        layer.deliver(m)
        others = [p for p in participants(origin, m) if p != layer.process]
        layer.send(tuple(others), Response(m.id))
        self.tr_w_resp(layer, m, packet.numbers, send=False)
        self.transmissions.on_response(layer, sender, m.id)
