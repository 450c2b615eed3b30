"""Atomic broadcast by destination agreement in which all send to all (All2All).

Source: the strategy that Ruchel and others 2021, section 5, compare their trees with; their names
are used here. A process that hears of a message gives it a timestamp and sends it, with the
message, to each of the others, which confirm it. A message with the timestamps of all is ordered
by the highest. 2n(n-1) packets.

Assumes reliable channels, which may reorder, crashes without recovery, any number of them, and
a perfect failure detector: `Suspect` comes for every crash, and for nothing else. Guarantees total
order and agreement among the processes that do not crash. Not genuine: every process takes part
in every broadcast, and only destinations deliver.

The paper says no more of it than that; after a crash the processes agree which timestamps of the
crashed count, as in `vcube-atomic`.
"""

from __future__ import annotations

from typing import ClassVar, final

from mypy_extensions import mypyc_attr

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context
from flexgroup.core.message import Message, MessageId, Packet
from flexgroup.protocols.parts.destination_agreement import (
    ALL,
    FAR,
    Agreed,
    DestinationAgreement,
    Flush,
    Request,
)


@final
@mypyc_attr(acyclic=True)
class Tree(Packet):
    """TREE(m, ts(m)), with the sender's timestamp; the tree is a star."""

    m: Message
    ts: int


@final
@mypyc_attr(acyclic=True)
class Ack(Packet):
    """ACK(m): your timestamp is here, and I have delivered so many messages."""

    m: MessageId
    count: int


class All2AllAtomic(DestinationAgreement):
    __slots__ = ()

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.TOTAL})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Request, Tree, Ack, Flush, Agreed)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.counts = [ALL if j == self.process else 0 for j in range(self.size)]

    def spread(self, m: Message) -> None:
        to = tuple([j for j in range(self.size) if self.counts[j] != ALL])
        if to:
            self.send(to, Tree(m, self.TS))
        # pending_ack(i), as a bit mask of those that have not confirmed.
        self.received[m.id].pending = self.others()

    def on_packet(self, sender: int, packet: Packet) -> None:
        if self.stopped:
            return
        if isinstance(packet, Ack):
            self.on_ack(sender, packet)
        elif isinstance(packet, Tree):
            self.on_tree(sender, packet)
        elif isinstance(packet, Flush):
            self.on_flush(sender, packet)
        elif isinstance(packet, Agreed):
            self.on_agreed(sender, packet)
        elif isinstance(packet, Request):
            self.on_request(sender, packet)
        else:
            raise self.refuse(sender, packet)

    def on_tree(self, j: int, packet: Tree) -> None:
        m, to = packet.m, packet.m.destinations
        if j >= self.size or j == self.process or not to or to[-1] >= self.size:
            raise self.refuse(j, packet)
        if packet.ts >= FAR:
            raise self.refuse(j, packet)
        if j in self.crashed:
            return
        self.TS = max(self.TS + 1, packet.ts)
        known = self.received.get(m.id)
        if known is None and not self.is_delivered(m.id):
            known = self.receive_first(m)
            self.spread(m)
        self.send((j,), Ack(m.id, self.count))
        if known is not None:
            known.hear(j, packet.ts)
            self.check_deliverable(known)

    def on_ack(self, j: int, packet: Ack) -> None:
        if j in self.crashed:
            return
        known = self.received.get(packet.m)
        if known is None or not known.pending >> j & 1:
            raise self.refuse(j, packet)
        self.counts[j] = max(self.counts[j], packet.count)
        known.pending ^= 1 << j
        self.check_deliverable(known)

    def take_over(self, crashed: tuple[int, ...]) -> None:
        for j in crashed:
            self.counts[j] = ALL
        others = self.others()
        for known in self.received.values():
            known.pending &= others
