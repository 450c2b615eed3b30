"""xAMP atLeast: so many destinations get a message that one of them got, even if the sender fails.

Source: Rodrigues and Veríssimo 1992; section 2.3.1.1 of the FlexGroup dissertation.

`xamp-at-least/2` ends when two destinations have responded, `xamp-at-least` when all have. Every
receiver runs tr-w-resp as well, without sending the first time: if responses are missing
when its time is up, it sends the message to those that are missing.

Assumes nothing of the channels, and that processes fail by stopping and are suspected then. If a
correct destination delivers a message, so many do as are waited for, or all that have not
crashed. No order.

`xamp-reliable` is what the paper calls it when all are waited for, and the base of causal and
atomic multicast: what a correct process multicasts, or delivers, all correct destinations deliver.

Differs from the paper:
- Responses are seen by all participants because they are sent to each: there is no common medium.
- Tries are not counted: a process goes on until it suspects who does not respond.
"""

from __future__ import annotations

from typing import ClassVar

from flexgroup.core.guarantees import NOTHING, Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Notice, Suspect, Trust
from flexgroup.core.message import Message, MessageId, Packet, origin_of
from flexgroup.protocols.parts.tr_w_resp import (
    RESPONSE_TICKS,
    Data,
    Received,
    Response,
    Transmission,
    message_of,
    number_at,
    numbered,
    participants,
    timer_of,
)


class XampAtLeast(Layer):
    __slots__ = ("received", "sent", "suspected", "transmissions")

    KEEPS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Data, Response)
    CLOSED: ClassVar[bool] = True
    OPTIONS: ClassVar[tuple[str, ...]] = tuple([str(nr) for nr in range(1, 10)])

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
        numbers = numbered(self.sent, m.destinations)
        if self.process in m.destinations:
            self.deliver(m)
        self.tr_w_resp(m, numbers, send=True)

    def tr_w_resp(self, m: Message, numbers: tuple[int, ...], send: bool) -> None:
        """The origin responds by sending, and I by calling this."""
        Pr = tuple([p for p in m.destinations if p not in self.suspected])
        transmission = Transmission(m, numbers, Pr, self.nr(m))
        transmission.respond(origin_of(m.id))
        transmission.respond(self.process)
        if send:
            self.send(tuple([p for p in Pr if p != self.process]), Data(m, numbers))
        self.transmissions[m.id] = transmission
        self.set_timer(timer_of(m.id), RESPONSE_TICKS)
        self.end_if_enough(m.id)

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Data):
            self.on_data(sender, packet)
        elif isinstance(packet, Response):
            self.on_response(sender, packet.m)
        else:
            raise self.refuse(sender, packet)

    def on_data(self, sender: int, packet: Data) -> None:
        m = packet.m
        origin = origin_of(m.id)
        if not (
            0 <= sender < self.size
            and 0 <= origin < self.size
            and self.is_for_me(m)
            and len(packet.numbers) == len(m.destinations)
        ):
            raise self.refuse(sender, packet)
        if origin == self.process:
            self.send((sender,), Response(m.id))
            return
        received = self.received.setdefault(origin, Received())
        number = number_at(self.process, m, packet.numbers)
        if received.has(number):
            self.send((sender,), Response(m.id))
            return
        received.add(number)
        self.deliver(m)
        others = [p for p in participants(origin, m) if p != self.process]
        self.send(tuple(others), Response(m.id))
        self.tr_w_resp(m, packet.numbers, send=False)
        self.on_response(sender, m.id)

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


class XampReliable(XampAtLeast):
    """What atLeast is called if the responses of all are waited for: then it gives more."""

    __slots__ = ()

    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    KEEPS: ClassVar[Guarantees] = NOTHING
    OPTIONS: ClassVar[tuple[str, ...]] = ()
