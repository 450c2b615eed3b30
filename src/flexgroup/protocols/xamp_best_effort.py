"""xAMP bestEffort: the sender repeats a message until enough destinations have responded.

Source: Rodrigues and Veríssimo 1992; section 2.3.1.1 of the FlexGroup dissertation.

`xamp-best-effort` waits for all destinations, `xamp-best-effort/2` for two of them, and
`xamp-best-effort/0` for none: an unreliable multicast.

Assumes nothing of the channels: packets may be lost, doubled and reordered. If the sender stays
correct, so many destinations as responses are waited for deliver the message, once.
If it crashes, any number may. No order.

Differs from the paper: tries are not counted. The sender goes on until it suspects who does not
respond: no network here promises to lose only so many packets.
"""

from __future__ import annotations

from typing import ClassVar

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Notice
from flexgroup.core.message import Message, Packet
from flexgroup.protocols.parts.known_messages import KnownMessages
from flexgroup.protocols.parts.tr_w_resp import (
    Data,
    Response,
    Transmission,
    Transmissions,
    numbered,
    numbered_at,
)


class XampBestEffort(Layer):
    __slots__ = ("received", "sent", "transmissions")

    KEEPS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Data, Response)
    CLOSED: ClassVar[bool] = True
    OPTIONS: ClassVar[tuple[str, ...]] = tuple([str(nr) for nr in range(10)])

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.sent: dict[int, int] = {}
        """How many messages went to each destination."""
        self.transmissions = Transmissions()
        self.received = KnownMessages()
        """What came, by origin and number."""

    def nr(self, m: Message) -> int:
        """How many responses to wait for."""
        return max([int(o) for o in self.context.options], default=len(m.destinations))

    def on_cast(self, m: Message) -> None:
        Pr = self.transmissions.expected(m.destinations)
        packet = Data(m, numbered(self.sent, m.destinations))
        self.send(Pr, packet)
        transmission = Transmission(m, packet, Pr, self.nr(m))
        if not transmission.has_enough():
            self.transmissions.start(self, transmission, send=False)

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Data):
            self.on_data(sender, packet)
        elif isinstance(packet, Response):
            self.transmissions.on_response(self, sender, packet.m)
        else:
            raise self.refuse(sender, packet)

    def on_data(self, sender: int, packet: Data) -> None:
        m = packet.m
        if not (
            0 <= sender < self.size
            and self.is_for_me(m)
            and len(packet.numbers) == len(m.destinations)
        ):
            raise self.refuse(sender, packet)
        number = numbered_at(self.process, sender, m, packet.numbers)
        if not self.received.has(number):
            self.received.add(number)
            self.deliver(m)
        self.send((sender,), Response(m.id))

    def on_timer(self, name: str) -> None:
        self.transmissions.on_timer(self, name)

    def on_notice(self, notice: Notice) -> None:
        self.transmissions.on_notice(self, notice)
        self.pass_on(notice)
