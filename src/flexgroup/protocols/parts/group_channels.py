"""Numbered channels between groups of replicas, whose members all compute the same transfers."""

from __future__ import annotations

from typing import Final, final

from flexgroup.core.layer import Record
from flexgroup.core.message import Message, Packet

CONFIRMED_AT_ONCE: Final = 16
"""How many transfers of a channel are confirmed together."""


@final
class Transfer(Packet):
    """The sender's group has these packets for yours, after so many other transfers.

    A packet for several groups is passed on: the sender's group got it from a message's origin.
    """

    number: int
    messages: tuple[Message, ...]


@final
class Confirm(Packet):
    """The log of the sender's group has all of your group's transfers before this number."""

    number: int


@final
class Outgoing(Record):
    """A channel to another group."""

    sent: int = 0
    """How many transfers there were."""
    confirmed: int = 0
    """How many of them, from the first on, are known to be in the other group's log."""
    kept: list[Transfer] = []
    """Those that are not."""


@final
class Incoming(Record):
    """A channel from another group."""

    taken: int = 0
    """How many transfers the inner layer has got."""
    early: dict[int, Transfer] = {}
    """Transfers that came while one before them is missing."""

    def is_known(self, number: int) -> bool:
        """Whether the transfer of this number came before."""
        return number < self.taken or number in self.early

    def take(self, packet: Transfer, in_order: bool) -> list[Transfer]:
        """Take one that came for the first time; these are to be handled now."""
        self.early[packet.number] = packet
        due = [] if in_order else [packet]
        while self.taken in self.early:
            following = self.early.pop(self.taken)
            self.taken += 1
            if in_order:
                due.append(following)
        return due
