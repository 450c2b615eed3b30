"""Numbered channels between groups of replicas of which some lie: what f + 1 members say is so.

All members of the sending group send each transfer. The receivers take it when f + 1 of them have
sent equal ones under its number, for one of these is correct; and they take transfers in the order
of their numbers, which is that of the sending group. That f + 1 have sent a transfer says nothing
of those before it: a liar leaves some out, and what it has sent would overtake them.

No liar makes the state grow without bounds. A member sends no more than WINDOW transfers beyond
what f + 1 members of the other group have confirmed. One of these is correct, and what it has taken
stands in the log of its group before anything that is sent upon its confirmation. So who receives
keeps no more than a copy of each of WINDOW transfers from each member, and refuses what is beyond.
"""

from __future__ import annotations

from typing import Final, final

from flexgroup.core.layer import Record
from flexgroup.core.message import Message
from flexgroup.protocols.parts.group_channels import Incoming, Transfer

AS_THEY_COME: Final = "as-they-come"
"""The option that stands for algorithms as printed: what comes f + 1 times is taken then, whatever
was sent before it."""

WINDOW: Final = 64
"""How many transfers of a channel may be under way."""

CONFIRMED_AT_ONCE: Final = WINDOW // 2
"""How many of them are confirmed together."""


def liars_among(group: tuple[int, ...]) -> int:
    """How many members of a group may lie, f of 3f + 1."""
    return (len(group) - 1) // 3


def enough_of(group: tuple[int, ...]) -> int:
    """How many of them must say the same so that one who does is correct."""
    return liars_among(group) + 1


@final
class Sending(Record):
    """A channel to another group."""

    sent: int = 0
    """How many transfers there were."""
    said: dict[int, int] = {}
    """How many of them each member of the other group says that its group has."""
    confirmed: int = 0
    """How many of them it has."""
    held: list[Transfer] = []
    """Those that wait because too many are not confirmed."""

    def add(self, messages: tuple[Message, ...]) -> list[Transfer]:
        """Number another transfer; it is returned if it may be sent now."""
        packet = Transfer(self.sent, messages)
        self.sent += 1
        if packet.number < self.confirmed + WINDOW:
            return [packet]
        self.held.append(packet)
        return []

    def confirm(self, member: int, number: int, group: tuple[int, ...]) -> list[Transfer]:
        """Take note of what a member of the other group says; these may be sent now."""
        self.said[member] = max(number, self.said.get(member, 0))
        said = sorted(self.said.values(), reverse=True)
        enough = enough_of(group)
        if len(said) >= enough:
            self.confirmed = said[enough - 1]
        may = [packet for packet in self.held if packet.number < self.confirmed + WINDOW]
        del self.held[: len(may)]
        return may


@final
class Vouched(Record):
    """A channel from another group."""

    incoming: Incoming
    """What is taken of it."""
    copies: dict[int, dict[int, Transfer]] = {}
    """What each member has sent, by the numbers of transfers that are not vouched for yet."""

    def is_under_way(self, number: int) -> bool:
        """Whether a correct member may have sent the transfer of this number."""
        return number < self.incoming.taken + WINDOW

    def add(
        self, member: int, packet: Transfer, group: tuple[int, ...], in_order: bool = True
    ) -> list[Transfer]:
        """Count the first copy that a member sends of a transfer; these are to be handled now."""
        if self.incoming.is_known(packet.number):
            return []
        copies = self.copies.setdefault(packet.number, {})
        copies.setdefault(member, packet)
        if list(copies.values()).count(packet) < enough_of(group):
            return []
        del self.copies[packet.number]
        return self.incoming.take(packet, in_order)


def confirmations(before: int, taken: int) -> list[int]:
    """The numbers up to which the sending group is told that its transfers are taken."""
    return [number for number in range(before + 1, taken + 1) if number % CONFIRMED_AT_ONCE == 0]
