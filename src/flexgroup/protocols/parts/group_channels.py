"""Numbered channels between groups of replicas, whose members all compute the same transfers."""

from __future__ import annotations

from typing import final

from flexgroup.core.layer import Record
from flexgroup.core.message import Message, Packet


@final
class Transfer(Packet):
    """The sender's group has these packets for yours, after so many other transfers.

    A packet for several groups is passed on: the sender's group got it from a message's origin.
    """

    number: int
    messages: tuple[Message, ...]


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
