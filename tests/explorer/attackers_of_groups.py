"""Attackers that know what groups of replicas send to each other."""

from __future__ import annotations

from flexgroup.core.layer import Context
from flexgroup.core.message import Message, Packet, message_id
from flexgroup.liars.attackers import Attacker, Forging, Told
from flexgroup.liars.liar import Leaving
from flexgroup.liars.lies import message_in, unheard_of
from flexgroup.protocols.log import Append
from flexgroup.protocols.parts.group_channels import Transfer


class Insisting(Forging):
    """Tells each lie twice."""

    __slots__ = ()
    KIND = "insist"

    def ways(self, leaving: Leaving) -> list[Told]:
        return [told * 2 for told in super().ways(leaving)]


class Inventing(Attacker):
    """Puts into the log of another group, once, what its own group never sent there: the first
    message that it hears of, as its origin has not multicast it."""

    __slots__ = ("heard",)
    KIND = "invent"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.heard: Message | None = None

    def on_packet(self, sender: int, packet: Packet) -> None:
        super().on_packet(sender, packet)
        if self.heard is None:
            self.heard = message_in(packet)
            if self.heard is not None:
                self.offer(self.KIND, 1 + len(self.context.replicas))

    def on_own_choice(self, name: str, chosen: int) -> None:
        if name != self.KIND or self.heard is None or not chosen:
            return
        group = self.context.replicas[chosen - 1]
        invented = Message(unheard_of(self.heard.id), group, b"")
        entry = Message(message_id(self.process, 1), group, Transfer(0, (invented,)))
        self.send(group[:1], Append(entry))
