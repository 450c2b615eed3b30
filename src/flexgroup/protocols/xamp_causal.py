"""xAMP causal multicast: messages carry the history that they depend on.

Source: Rodrigues and Veríssimo 1992; section 2.3.1.1 of the FlexGroup dissertation.

A causal history is a list of pairs (id(m), D(m)): a message and its destinations. A message carries
the history of its sender, and is delivered at k when all that is in it and was meant for k
has been delivered at k. Below that it is the reliable multicast of xAMP: every receiver sends
the message on to those that do not respond.

Assumes nothing of the channels, and that processes fail by stopping and are suspected then.
Guarantees reliable delivery and causal order, which includes FIFO order.

Differs from the paper:
- *Histories are pruned by knowledge, not by time.* The paper removes what is older than the longest
  time a message can take; here nothing bounds that. A destination is struck off D(m) when it has
  responded, or when a later message to it is in the history: it will wait for m with that. A pair
  without destinations is gone. So at most one message of each sender to each destination is left.
- *A response means delivered*, not just received, because it is what strikes off.
- D(m) holds the number of m at each destination, by which it knows what it has delivered.
- Responses are sent to all participants; tries are not counted: see `xamp_at_least`.
"""

from __future__ import annotations

from typing import ClassVar, final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Notice
from flexgroup.core.message import Message, MessageId, Packet, message_id, origin_of, seq_of
from flexgroup.protocols.parts.known_messages import KnownMessages
from flexgroup.protocols.parts.tr_w_resp import (
    Transmission,
    Transmissions,
    numbered,
    numbered_at,
    participants,
)

Numbered = tuple[tuple[int, int], ...]
"""Destinations, each with the number of the message there."""


@final
class Data(Packet):
    """m, its number at each destination, and the history of its sender, flat."""

    m: Message
    numbers: tuple[int, ...]
    history: tuple[int, ...]


@final
class Response(Packet):
    """m is delivered."""

    m: MessageId


def flat(history: dict[MessageId, Numbered]) -> tuple[int, ...]:
    """Origin and seq of m, how many destinations, for each its process and number; and so on."""
    out: list[int] = []
    for m in sorted(history):
        out += [origin_of(m), seq_of(m), len(history[m])]
        for process, number in history[m]:
            out += [process, number]
    return tuple(out)


def pairs(history: tuple[int, ...]) -> dict[MessageId, Numbered] | None:
    """The reverse of `flat`; None if it makes no sense."""
    found: dict[MessageId, Numbered] = {}
    place = 0
    while place + 2 < len(history):
        origin, seq, count = history[place : place + 3]
        end = place + 3 + 2 * count
        if end > len(history):
            return None
        part = history[place + 3 : end]
        found[message_id(origin, seq)] = tuple(zip(part[::2], part[1::2], strict=True))
        place = end
    return found if place == len(history) else None


class XampCausal(Layer):
    __slots__ = ("delivered", "history", "sent", "transmissions", "waiting")

    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.FIFO, Guarantee.CAUSAL})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Data, Response)
    CLOSED: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.sent: dict[int, int] = {}
        """How many messages went to each destination."""
        self.history: dict[MessageId, Numbered] = {}
        """The causal history; of D(m), who may not have delivered m."""
        self.transmissions = Transmissions()
        self.waiting: list[Data] = []
        """What came and is not delivered."""
        self.delivered = KnownMessages()
        """What was delivered, by origin and number."""

    def on_cast(self, m: Message) -> None:
        packet = Data(m, numbered(self.sent, m.destinations), flat(self.history))
        if self.process in m.destinations:
            self.deliver(m)
        self.tr_w_resp(packet, send=True)
        self.add_to_history(packet)

    def tr_w_resp(self, packet: Data, send: bool) -> None:
        """The origin has delivered its own message."""
        m = packet.m
        Pr = self.transmissions.expected(m.destinations)
        transmission = Transmission(m, packet, Pr, len(m.destinations))
        transmission.respond(origin_of(m.id))
        self.transmissions.start(self, transmission, send)

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
            and pairs(packet.history) is not None
        ):
            raise self.refuse(sender, packet)
        if self.has_delivered(numbered_at(self.process, origin, m, packet.numbers)):
            self.send((sender,), Response(m.id))
        elif m.id not in self.transmissions.open:
            self.waiting.append(packet)
            self.tr_w_resp(packet, send=False)
            self.deliver_what_is_stable()

    def has_delivered(self, number: MessageId) -> bool:
        return origin_of(number) == self.process or self.delivered.has(number)

    def deliver_what_is_stable(self) -> None:
        place = 0
        while place < len(self.waiting):
            packet = self.waiting[place]
            place += 1
            if self.is_stable(packet):
                place = 0
                self.waiting.remove(packet)
                self.deliver_and_respond(packet)

    def is_stable(self, packet: Data) -> bool:
        """All messages in its history that were meant for this process are delivered here."""
        return all(
            self.has_delivered(message_id(origin_of(m), number))
            for m, destinations in (pairs(packet.history) or {}).items()
            for process, number in destinations
            if process == self.process
        )

    def deliver_and_respond(self, packet: Data) -> None:
        m = packet.m
        origin = origin_of(m.id)
        self.delivered.add(numbered_at(self.process, origin, m, packet.numbers))
        self.deliver(m)
        self.add_to_history(packet)
        others = [p for p in participants(origin, m) if p != self.process]
        self.send(tuple(others), Response(m.id))
        self.on_response(self.process, m.id)

    def add_to_history(self, packet: Data) -> None:
        """Add a message, and what the history that it came with has beyond it."""
        m = packet.m
        for other, destinations in (pairs(packet.history) or {}).items():
            known = self.history.get(other, destinations)
            self.history[other] = tuple(
                [
                    (process, number)
                    for process, number in known
                    if (process, number) in destinations and process not in m.destinations
                ]
            )
        self.history[m.id] = tuple(zip(m.destinations, packet.numbers, strict=True))
        self.strike_off(m.id, origin_of(m.id))
        for other in sorted(self.history):
            self.strike_off(other, self.process)
        self.keep_the_latest()

    def keep_the_latest(self) -> None:
        """A destination that waits for a message waits for those before it of the same origin."""
        latest: dict[tuple[int, int], int] = {}
        for m, destinations in self.history.items():
            for process, number in destinations:
                key = (origin_of(m), process)
                latest[key] = max(latest.get(key, 0), number)
        for m in sorted(self.history):
            left = [(p, n) for p, n in self.history[m] if latest[origin_of(m), p] == n]
            if left:
                self.history[m] = tuple(left)
            else:
                del self.history[m]

    def strike_off(self, m: MessageId, process: int) -> None:
        """This process has delivered m."""
        if m in self.history:
            self.history[m] = tuple([pair for pair in self.history[m] if pair[0] != process])

    def on_response(self, sender: int, m: MessageId) -> None:
        self.strike_off(m, sender)
        if not self.history.get(m, True):
            del self.history[m]
        self.transmissions.on_response(self, sender, m)

    def on_timer(self, name: str) -> None:
        self.transmissions.on_timer(self, name, itself=False)

    def on_notice(self, notice: Notice) -> None:
        self.transmissions.on_notice(self, notice)
        self.pass_on(notice)
