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
    """What the members of another group have sealed, and the log does not have yet."""

    copies: dict[int, dict[int, Sealed]] = {}
    """The last ones of each member, by their numbers."""
    certificates: dict[int, Certificate] = {}
    """Those of transfers that enough members have sealed, by their numbers."""

    def add(self, member: int, transfer: Transfer, seal: bytes, enough: int) -> Certificate | None:
        """Keep the first copy of a transfer that a member sends; a certificate, if there is one
        now and was none before."""
        number = transfer.number
        copies = self.copies.setdefault(member, {})
        copies.setdefault(number, Sealed(transfer, seal))
        newest = max(copies)
        for old in [other for other in copies if other <= newest - WINDOW]:
            del copies[old]
        equal = {
            other: kept[number].seal
            for other, kept in sorted(self.copies.items())
            if number in kept and kept[number].transfer == transfer
        }
        if len(equal) < enough or number in self.certificates:
            return None
        certificate = Certificate(transfer, tuple(equal), tuple(equal.values()))
        self.certificates[number] = certificate
        return certificate

    def drop(self, number: int) -> None:
        """Forget what is in the log."""
        self.certificates.pop(number, None)
        for copies in self.copies.values():
            copies.pop(number, None)
