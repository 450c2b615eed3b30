"""Safe delivery: a message is delivered when all of its destinations have it.

Source: the level *safe* of Transis (Amir, Dolev, Kramer and Malki 1992) and Totem (Amir and others
1995), and uniform agreement in the words of Hadzilacos and Toueg 1994. It lies on top of any
order. What the layer below delivers is held, and acknowledged to the other destinations; held
messages are delivered in the order in which they came, the first of them as soon as all of its
destinations have acknowledged it. So the order below is kept, and what one process has delivered,
even if it crashes then, no other can fail to deliver.

Assumes a layer below that delivers at all correct destinations what it delivers at one. A crashed
destination is waited for until it is suspected, and a suspicion must not be wrong. Guarantees
uniform agreement.

Acknowledgements are counts, so that one is enough for many messages: an origin numbers its
messages for each destination, as in `fifo`, and a destination tells how many of each origin's it
has without a gap. All numbers go to all destinations, so each can tell which count of which other
it waits for. The counts ride on the next message or, if there is none when what is at hand has
been handled, on a packet of their own. The origin acknowledges like the others: it has its own
message, but the place of the message in the order it knows only when the layer below delivers it.
"""

from __future__ import annotations

from typing import ClassVar, Final, final

from mypy_extensions import mypyc_attr

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Notice, Record, Suspect
from flexgroup.core.message import Message, Packet, origin_of

ACK: Final = "ack"
"""The timer that ends the wait of acknowledgements for a message to ride on."""

Counts = tuple[int, ...]
"""Pairs of an origin and of how many of its messages the sender has without a gap."""


@final
@mypyc_attr(acyclic=True)
class Data(Packet):
    """m, which of its origin's messages to each destination it is, and acknowledgements."""

    m: Message
    numbers: tuple[int, ...]
    acks: Counts


@final
@mypyc_attr(acyclic=True)
class Ack(Packet):
    """Acknowledgements that found no message to ride on."""

    acks: Counts


class Safe(Layer):
    __slots__ = ("early", "have", "held", "is_ack_due", "peers", "sent", "suspects")

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.UNIFORM})
    KEEPS: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.FIFO, Guarantee.CAUSAL, Guarantee.TOTAL}
    )
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Data, Ack)
    UNORDERED: ClassVar[tuple[type[Packet], ...]] = (Ack,)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.sent = [0] * context.size
        """How many messages went to each destination."""
        self.have: dict[int, int] = {}
        """How many messages of each origin came without a gap."""
        self.early: dict[tuple[int, int], Data] = {}
        """Messages that came beyond a gap, by origin and number."""
        self.held: list[Data] = []
        """What came from below and is not safe, or comes after what is not, in that order."""
        self.peers = [Peer() for _ in range(context.size)]
        """What each process has acknowledged, and what it is owed."""
        self.suspects: set[int] = set()
        self.is_ack_due = False
        """Whether the timer is set."""

    def on_cast(self, m: Message) -> None:
        numbers = tuple([self.sent[destination] for destination in m.destinations])
        owed: set[int] = set()
        for destination in m.destinations:
            self.sent[destination] += 1
            peer = self.peers[destination]
            if peer.owed:
                owed |= peer.owed
                peer.owed.clear()
        self.send(m.destinations, Data(m, numbers, self.counts(owed)))

    def counts(self, origins: set[int]) -> Counts:
        return tuple([number for one in sorted(origins) for number in (one, self.have[one])])

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Data) and self.is_sound(sender, packet):
            self.on_message(sender, packet)
            self.on_acks(sender, packet.acks)
        elif isinstance(packet, Ack) and self.may_acknowledge(sender, packet.acks):
            self.on_acks(sender, packet.acks)
        else:
            raise self.refuse(sender, packet)
        self.deliver_safe()

    def is_sound(self, sender: int, packet: Data) -> bool:
        """Tell whether a correct process may have sent it."""
        m = packet.m
        if not self.is_for_me(m) or len(packet.numbers) != len(m.destinations):
            return False
        number = packet.numbers[m.destinations.index(self.process)]
        return (
            sender == origin_of(m.id)
            and number >= self.have.get(sender, 0)
            and (sender, number) not in self.early
            and (not packet.acks or self.may_acknowledge(sender, packet.acks))
        )

    def may_acknowledge(self, sender: int, acks: Counts) -> bool:
        """Tell whether it is a member, and acknowledges no more than this process sent it."""
        if sender >= self.size or len(acks) % 2 != 0:
            return False
        for place in range(0, len(acks), 2):
            if acks[place] == self.process and acks[place + 1] > self.sent[sender]:
                return False
        return True

    def on_message(self, origin: int, packet: Data) -> None:
        self.held.append(packet)
        number = packet.numbers[packet.m.destinations.index(self.process)]
        turn = self.have.get(origin, 0)
        if number == turn:
            self.owe_acks(origin, packet.m)
            turn += 1
            while self.early and (origin, turn) in self.early:
                self.owe_acks(origin, self.early.pop((origin, turn)).m)
                turn += 1
            self.have[origin] = turn
        else:
            self.early[origin, number] = packet

    def owe_acks(self, origin: int, m: Message) -> None:
        """Owe the other destinations a count that contains this message."""
        for destination in m.destinations:
            if destination != self.process and destination not in self.suspects:
                self.peers[destination].owed.add(origin)
                if not self.is_ack_due:
                    self.is_ack_due = True
                    self.set_timer(ACK, 0)

    def on_acks(self, sender: int, acks: Counts) -> None:
        acked = self.peers[sender].acked if acks else {}
        for place in range(0, len(acks), 2):
            origin, count = acks[place], acks[place + 1]
            if count > acked.get(origin, 0):
                acked[origin] = count

    def deliver_safe(self) -> None:
        count = 0
        for packet in self.held:
            if not self.is_safe(packet):
                break
            self.deliver(packet.m)
            count += 1
        if count:
            del self.held[:count]

    def is_safe(self, packet: Data) -> bool:
        """Tell whether all destinations have it."""
        m = packet.m
        origin = origin_of(m.id)
        for place, destination in enumerate(m.destinations):
            if destination == self.process or destination in self.suspects:
                continue
            if self.peers[destination].acked.get(origin, 0) <= packet.numbers[place]:
                return False
        return True

    def on_timer(self, name: str) -> None:
        """Send the acknowledgements for which there was no message to ride on."""
        self.is_ack_due = False
        parties: dict[Counts, list[int]] = {}
        for process, peer in enumerate(self.peers):
            if peer.owed:
                parties.setdefault(self.counts(peer.owed), []).append(process)
                peer.owed.clear()
        for acks, party in parties.items():
            self.send(tuple(party), Ack(acks))

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Suspect) and notice.process < self.size:
            self.suspects.add(notice.process)
            self.peers[notice.process].owed.clear()
            self.deliver_safe()
        self.pass_on(notice)

    def held_back(self) -> list[Message]:
        return [packet.m for packet in self.held]


@final
class Peer(Record):
    """What another process and this one have told each other."""

    acked: dict[int, int] = {}
    """How many messages of each origin it has, as far as it has acknowledged them."""
    owed: set[int] = set()
    """The origins of which it is owed a count."""
