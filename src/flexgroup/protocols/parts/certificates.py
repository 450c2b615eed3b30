"""Certificates: proof, for whoever gets to see it, of what a group of replicas sends to another.

What f + 1 members have sealed is so. A copy is kept until the log of the receivers has the
transfer. A member sends no more than WINDOW transfers beyond what a correct receiver has taken
(`vouched_channels`), and what one has taken the log tells all others. So of each member no more
than its last WINDOW transfers are kept; a liar that says more pushes out its own.
"""

from __future__ import annotations

from typing import final

from flexgroup.core.layer import Record
from flexgroup.core.message import Packet
from flexgroup.protocols.parts.group_channels import Transfer
from flexgroup.protocols.parts.vouched_channels import WINDOW


@final
class Sealed(Packet):
    """The sender's group has this transfer for yours; with the seal of the sender on it."""

    transfer: Packet
    seal: bytes


@final
class Certificate(Packet):
    """These members of a group have sealed the transfer; to the log of the receiving group."""

    transfer: Packet
    members: tuple[int, ...]
    seals: tuple[bytes, ...]


@final
class SealedCopies(Record):
    """What the members of another group have sealed."""

    copies: dict[int, dict[int, Sealed]] = {}
    """The last ones of each member, by their numbers."""

    def keep(self, member: int, number: int, packet: Sealed) -> None:
        copies = self.copies.setdefault(member, {})
        copies[number] = packet
        newest = max(copies)
        for old in [other for other in copies if other <= newest - WINDOW]:
            del copies[old]

    def drop(self, number: int) -> None:
        """Forget what is in the log."""
        for copies in self.copies.values():
            copies.pop(number, None)

    def certificate(self, number: int, transfer: Transfer, enough: int) -> Certificate | None:
        """What proves that so many have sealed this transfer, if they have."""
        members = [
            member
            for member in sorted(self.copies)
            if number in self.copies[member] and self.copies[member][number].transfer == transfer
        ][:enough]
        if len(members) < enough:
            return None
        seals = [self.copies[member][number].seal for member in members]
        return Certificate(transfer, tuple(members), tuple(seals))
