"""An abstract log: every group of replicas delivers in one sequence, which the world chooses.

It stands in for a replicated log such as `paxos` below layers that rest on one, so that small
systems of these can be explored whole: the first member of a group puts what comes into the order
of arrival, and tells the others. One packet for a message to a group of one, and one more for each
further member. It is no protocol to be used: a group whose first member crashes is silent.

Assumes reliable channels, which may reorder, and no failures. Guarantees what `paxos` does: total
order in each group, and what one member delivers all others deliver. Genuine. A message goes to
exactly one whole group: one to several is refused.
"""

from __future__ import annotations

from typing import ClassVar, final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer
from flexgroup.core.message import Message, Packet, origin_of
from flexgroup.core.replicas import check_one_group, group_of


@final
class Append(Packet):
    """Put m into the log; to the first member of the group."""

    m: Message


@final
class Entry(Packet):
    """m is in this place of the log; from the first member of the group."""

    place: int
    m: Message


class Log(Layer):
    __slots__ = ("early", "group", "length")

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.TOTAL, Guarantee.UNIFORM}
    )
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Append, Entry)
    NEEDS_REPLICAS: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.group = group_of(context.replicas, context.process)
        self.length = 0
        """How many entries are delivered here."""
        self.early: dict[int, Message] = {}
        """Entries that came while one before them is missing."""

    def on_cast(self, m: Message) -> None:
        check_one_group(self.context.replicas, m.destinations, "log")
        if m.destinations[0] == self.process:
            self.append(m)
        else:
            self.send((m.destinations[0],), Append(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, Append) and self.is_asked(sender, packet.m):
            self.append(packet.m)
        elif isinstance(packet, Entry) and self.is_ours(packet.m) and self.is_new(sender, packet):
            self.on_entry(packet)
        else:
            raise self.refuse(sender, packet)

    def append(self, m: Message) -> None:
        if len(self.group) > 1:
            self.send(self.group[1:], Entry(self.length, m))
        self.length += 1
        self.deliver(m)

    def on_entry(self, packet: Entry) -> None:
        self.early[packet.place] = packet.m
        while self.length in self.early:
            self.deliver(self.early.pop(self.length))
            self.length += 1

    def is_asked(self, sender: int, m: Message) -> bool:
        """Tell whether this process is the first of the group, and the sender asks on its own
        behalf: the layer above goes by who multicast an entry."""
        return self.is_ours(m) and self.process == self.group[0] and origin_of(m.id) == sender

    def is_ours(self, m: Message) -> bool:
        return self.is_for_me(m) and m.destinations == self.group

    def is_new(self, sender: int, packet: Entry) -> bool:
        """Tell whether the first member of the group, if it is correct, may have sent it."""
        if sender != self.group[0] or self.process == sender:
            return False
        return packet.place >= self.length and packet.place not in self.early
