"""Attackers that know what groups of replicas send to each other."""

from __future__ import annotations

from flexgroup.core.message import Message, message_id
from flexgroup.liars.attackers import Forging, Hearing, Told
from flexgroup.liars.liar import Leaving
from flexgroup.liars.lies import unheard_of
from flexgroup.protocols.log import Append
from flexgroup.protocols.parts.group_channels import Transfer


class Insisting(Forging):
    """Tells each lie twice."""

    __slots__ = ()
    KIND = "insist"

    def ways(self, leaving: Leaving) -> list[Told]:
        return [told * 2 for told in super().ways(leaving)]


class Inventing(Hearing):
    """Puts into the log of another group, once, what its own group never sent there: the first
    message that it hears of, as its origin has not multicast it."""

    __slots__ = ()
    KIND = "invent"

    def options(self) -> int:
        return 1 + len(self.context.replicas)

    def on_own_choice(self, name: str, chosen: int) -> None:
        if name != self.KIND or self.heard is None or not chosen:
            return
        group = self.context.replicas[chosen - 1]
        invented = Message(unheard_of(self.heard.id), group, b"")
        entry = Message(message_id(self.process, 1), group, Transfer(0, (invented,)))
        self.send(group[:1], Append(entry))
