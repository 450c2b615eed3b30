"""ft-abcast: Delporte-Gallet and Fauconnier's atomic multicast between groups of replicas.

Source: Delporte-Gallet and Fauconnier 2000; algorithm 3.3 and section 3.2.3 of the DCC dissertation
(Louzada 2024), whose names are used here. A message walks through its groups from the lowest to the
highest; each agrees on its place, and delivers no other message until the last one's END.

Assumes a log for each group (`paxos`, or `log` in small scopes). Guarantees total (acyclic) order
and uniform agreement, although fewer than half of each group crash. Genuine. Three delays for each
group until its leader delivers, and one more for END.

Reads the algorithm thus: `propose` and `decide` are the log's. What is sent to a group goes through
its log, so that lines 5 and 21 propose as well, lines 6 to 9 and 13, by which all members propose,
have nothing left to do, and `Rec` holds what is decided during a wait. As the text says, all
members of a group send m on, and the first copy counts.

Differs from the algorithm as printed (`ft-abcast-published`): an END that comes before m is
remembered. Others of the group may have sent m on long before this process delivers it; line 22,
which waits until an END is received, would wait for ever if all of them came before.
"""

from __future__ import annotations

from typing import ClassVar, Final, final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer
from flexgroup.core.message import NO_MESSAGE, Message, MessageId, Packet
from flexgroup.core.replicas import check_destinations, group_number, numbers_of_groups
from flexgroup.protocols.parts.known_messages import KnownMessages

PUBLISHED: Final = "published"


@final
class Forward(Packet):
    """(m), from the origin or from a member of the previous group."""

    m: Message


@final
class End(Packet):
    """(m.END), from a member of the last group."""

    m: MessageId


class FtAbcast(Layer):
    __slots__ = ("Del", "Rec", "ended", "g", "waiting_for")

    NEEDS: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.TOTAL, Guarantee.UNIFORM}
    )
    GIVES: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.TOTAL, Guarantee.UNIFORM}
    )
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Forward, End)
    UNORDERED: ClassVar[tuple[type[Packet], ...]] = (End,)
    NEEDS_REPLICAS: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.g = group_number(context.replicas, context.process)
        """The group of this process, g(p)."""
        self.Rec: list[Message] = []
        self.Del = KnownMessages()
        """What is delivered, or decided and in Rec."""
        self.waiting_for: MessageId = NO_MESSAGE
        """The message whose END this process waits for."""
        # Not in the paper.
        self.ended: set[MessageId] = set()
        """The messages whose END came before they were delivered here."""

    def on_cast(self, m: Message) -> None:
        """Lines 4 and 5."""
        check_destinations(self.context.replicas, m.destinations)
        lowest = numbers_of_groups(self.context.replicas, m.destinations)[0]
        self.send(self.context.replicas[lowest], Forward(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Forward) and self.is_possible(sender, packet.m):
            self.decide(packet.m)
        elif isinstance(packet, End) and group_number(self.context.replicas, sender) > self.g >= 0:
            self.on_end(packet.m)
        else:
            raise self.refuse(sender, packet)

    def is_possible(self, sender: int, m: Message) -> bool:
        """Not in the paper: m is for whole groups, and comes from the one before, if any."""
        replicas = self.context.replicas
        if self.g < 0 or not self.is_for_me(m):
            return False
        groups = numbers_of_groups(replicas, m.destinations)
        if len(m.destinations) != sum([len(replicas[group]) for group in groups]):
            return False
        place = groups.index(self.g)
        return place == 0 or group_number(replicas, sender) == groups[place - 1]

    def decide(self, m: Message) -> None:
        """Lines 10 to 15, for the first copy of m in the log."""
        if not self.Del.has(m.id):
            self.Del.add(m.id)
            self.Rec.append(m)
            self.handle_next()

    def handle_next(self) -> None:
        while self.Rec and self.waiting_for == NO_MESSAGE:
            self.handle(self.Rec.pop(0))

    def handle(self, m: Message) -> None:
        """Lines 16 to 22."""
        replicas = self.context.replicas
        groups = numbers_of_groups(replicas, m.destinations)
        self.deliver(m)
        if self.g == groups[-1]:
            for group in groups[:-1]:
                self.send(replicas[group], End(m.id))
        else:
            self.send(replicas[groups[groups.index(self.g) + 1]], Forward(m))
            if m.id in self.ended:
                self.ended.remove(m.id)
            else:
                self.waiting_for = m.id

    def on_end(self, m: MessageId) -> None:
        """Go on, if this process waits for it; all members of the last group send an END."""
        if m == self.waiting_for:
            self.waiting_for = NO_MESSAGE
            self.handle_next()
        elif PUBLISHED not in self.context.options and self.is_awaited(m):
            self.ended.add(m)

    def is_awaited(self, m: MessageId) -> bool:
        """Not in the paper: m is not delivered here yet."""
        return not self.Del.has(m) or any(waiting.id == m for waiting in self.Rec)
