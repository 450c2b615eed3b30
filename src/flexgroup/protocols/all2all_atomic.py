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
from flexgroup.core.layer import Context, Layer, Notice, Suspect
from flexgroup.core.message import Message, MessageId, Packet
from flexgroup.protocols.parts.delivery_log import ALL, DeliveryLog
from flexgroup.protocols.parts.destination_agreement import (
    Agreed,
    DestinationAgreement,
    Flush,
    Received,
)
from flexgroup.protocols.parts.senders import Request, is_of_client, is_of_members
from flexgroup.protocols.parts.timestamps import FAR


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


class All2AllAtomic(Layer):
    __slots__ = ("agreement",)

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.TOTAL})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Request, Tree, Ack, Flush, Agreed)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        log = DeliveryLog([ALL if j == self.process else 0 for j in range(self.size)])
        self.agreement = DestinationAgreement(self.process, self.size, log)
        """TS, received(i) and stamped(i); and what is ours, after a crash."""

    def on_cast(self, m: Message) -> None:
        if self.process >= self.size:
            self.send(m.destinations[:1], Request(m))
        elif not self.agreement.stopped:
            self.a_broadcast(m)

    def a_broadcast(self, m: Message) -> None:
        self.agreement.TS += 1
        known = self.agreement.receive_first(m)
        self.tell(known)
        self.agreement.check_deliverable(self, known)

    def tell(self, known: Received) -> None:
        """Tell all others the timestamp that this process has just given a message: TS."""
        counts = self.agreement.log.counts
        to = tuple([j for j in range(self.size) if counts[j] != ALL])
        if to:
            self.send(to, Tree(known.m, self.agreement.TS))
        # pending_ack(i), as a bit mask of those that have not confirmed.
        known.pending = self.agreement.others()

    def on_packet(self, sender: int, packet: Packet) -> None:
        if self.agreement.stopped:
            return
        if isinstance(packet, Ack):
            self.on_ack(sender, packet)
        elif isinstance(packet, Tree):
            self.on_tree(sender, packet)
        elif isinstance(packet, Flush):
            self.on_flush(sender, packet)
        elif isinstance(packet, Agreed):
            self.agreement.on_agreed(self, sender, packet)
        elif isinstance(packet, Request) and self.is_request(sender, packet.m):
            self.a_broadcast(packet.m)
        else:
            raise self.refuse(sender, packet)

    def is_request(self, client: int, m: Message) -> bool:
        return is_of_client(self, client, m) and self.agreement.is_new(m.id)

    def on_tree(self, j: int, packet: Tree) -> None:
        m = packet.m
        if not is_of_members(self, j, m) or packet.ts >= FAR:
            raise self.refuse(j, packet)
        agreement = self.agreement
        if j in agreement.crashed:
            return
        agreement.TS = max(agreement.TS + 1, packet.ts)
        known = agreement.received.get(m.id)
        if known is None and not agreement.delivered.has(m.id):
            known = agreement.receive_first(m)
            self.tell(known)
        self.send((j,), Ack(m.id, agreement.log.count))
        if known is not None:
            known.hear(j, packet.ts)
            agreement.check_deliverable(self, known)

    def on_ack(self, j: int, packet: Ack) -> None:
        agreement = self.agreement
        if j in agreement.crashed:
            return
        known = agreement.received.get(packet.m)
        if known is None or not known.pending >> j & 1:
            raise self.refuse(j, packet)
        counts = agreement.log.counts
        counts[j] = max(counts[j], packet.count)
        known.pending ^= 1 << j
        agreement.check_deliverable(self, known)

    # After a crash.

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Suspect) and self.agreement.is_news(notice):
            self.crash((notice.process,))
        self.pass_on(notice)

    def crash(self, crashed: tuple[int, ...]) -> None:
        """Wait for no confirmation of theirs any more."""
        agreement = self.agreement
        agreement.exclude(crashed)
        for j in crashed:
            agreement.log.counts[j] = ALL
        others = agreement.others()
        for known in agreement.received.values():
            known.pending &= others
        agreement.flush(self)

    def on_flush(self, j: int, packet: Flush) -> None:
        news = self.agreement.crashes_in(self, j, packet)
        if news:
            self.crash(news)
        self.agreement.on_flush(self, j, packet)
