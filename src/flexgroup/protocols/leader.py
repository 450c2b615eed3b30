"""A leader oracle: the lowest member of a group of replicas that is not suspected leads it.

Source: the failure detector Omega of Chandra, Hadzilacos and Toueg 1996, made of a detector that
suspects, as in Cachin, Guerraoui and Rodrigues 2011 ("eventual leader detector").

It lies on a failure detector (`heartbeat`, `vcube-detector`) or, at the bottom of a stack, on the
suspicions of the world. Whenever another member of this process's own group is suspected, or
trusted again, it tells the layers above `Leader`: the lowest member that is not suspected, and all
that are not. If the detector is right in the end, all correct members name the same correct one
from then on; before, they may name different ones. It passes on what it hears, and carries messages
as best-effort multicast does.
"""

from __future__ import annotations

from typing import ClassVar

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Leader, Notice, Suspect, Trust
from flexgroup.core.message import Message, Packet
from flexgroup.core.replicas import group_of
from flexgroup.protocols.parts.detection import Data


class LeaderOracle(Layer):
    __slots__ = ("group", "trusted")

    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.LEADER})
    KEEPS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.FIFO})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Data,)
    NEEDS_REPLICAS: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.group = group_of(context.replicas, context.process)
        self.trusted = self.group
        """The members of the group that are not suspected; this process always is one."""

    def on_cast(self, m: Message) -> None:
        self.send(m.destinations, Data(m))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if not isinstance(packet, Data) or not self.is_for_me(packet.m):
            raise self.refuse(sender, packet)
        self.deliver(packet.m)

    def on_notice(self, notice: Notice) -> None:
        self.pass_on(notice)
        if isinstance(notice, Suspect):
            self.trust_only([j for j in self.trusted if j != notice.process])
        elif isinstance(notice, Trust):
            self.trust_only([*self.trusted, notice.process])

    def trust_only(self, members: list[int]) -> None:
        trusted = tuple([j for j in self.group if j in members or j == self.process])
        if trusted != self.trusted:
            self.trusted = trusted
            self.pass_on(Leader(trusted[0], trusted))
