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
from flexgroup.core.layer import Context, Layer, Notice, Suspect, Trust
from flexgroup.core.message import Message, MessageId, Packet
from flexgroup.protocols.parts.tr_w_resp import (
    RESPONSE_TICKS,
    Data,
    Received,
    Response,
    Transmission,
    message_of,
    number_at,
    numbered,
    timer_of,
)


class XampBestEffort(Layer):
    __slots__ = ("received", "sent", "suspected", "transmissions")

    KEEPS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Data, Response)
    CLOSED: ClassVar[bool] = True
    OPTIONS: ClassVar[tuple[str, ...]] = tuple([str(nr) for nr in range(10)])

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.sent: dict[int, int] = {}
        """How many messages went to each destination."""
        self.transmissions: dict[MessageId, Transmission] = {}
        self.received: dict[int, Received] = {}
        """What came from each origin."""
        self.suspected: set[int] = set()

    def nr(self, m: Message) -> int:
        """How many responses to wait for."""
        return max([int(o) for o in self.context.options], default=len(m.destinations))

    def on_cast(self, m: Message) -> None:
        Pr = tuple([p for p in m.destinations if p not in self.suspected])
        transmission = Transmission(m, numbered(self.sent, m.destinations), Pr, self.nr(m))
        self.send(Pr, Data(m, transmission.numbers))
        if not transmission.has_enough():
            self.transmissions[m.id] = transmission
            self.set_timer(timer_of(m.id), RESPONSE_TICKS)

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Data):
            self.on_data(sender, packet)
        elif isinstance(packet, Response):
            self.on_response(sender, packet.m)
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
        received = self.received.setdefault(sender, Received())
        number = number_at(self.process, m, packet.numbers)
        if not received.has(number):
            received.add(number)
            self.deliver(m)
        self.send((sender,), Response(m.id))

    def on_response(self, sender: int, m: MessageId) -> None:
        transmission = self.transmissions.get(m)
        if transmission is not None:
            transmission.respond(sender)
            self.end_if_enough(m)

    def end_if_enough(self, m: MessageId) -> None:
        if self.transmissions[m].has_enough():
            del self.transmissions[m]
            self.cancel_timer(timer_of(m))

    def on_timer(self, name: str) -> None:
        transmission = self.transmissions[message_of(name)]
        self.send(transmission.try_again(), Data(transmission.m, transmission.numbers))
        self.set_timer(name, RESPONSE_TICKS)

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Suspect):
            self.suspected.add(notice.process)
            for m in sorted(self.transmissions):
                self.transmissions[m].leave_out(notice.process)
                self.end_if_enough(m)
        elif isinstance(notice, Trust):
            self.suspected.discard(notice.process)
        self.pass_on(notice)
