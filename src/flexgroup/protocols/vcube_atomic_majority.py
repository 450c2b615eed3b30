"""Atomic broadcast over VCube's spanning trees that wrong suspicions do not harm.

Source: algorithm 1 of Ruchel and others 2021, whose names and lines are used here, for partially
synchronous systems, which that paper leaves to future work. As long as nobody is suspected it
is `vcube-atomic`, packet by packet, but for one thing: who does not know all timestamps of a
message confirms none of them yet. So whoever has all confirmations, and delivers, knows that all
processes know them all. `MajorityAgreement` does the rest: if somebody is suspected, a majority
decides on the order, and what may have been delivered comes first, as the timestamps say.

Assumes reliable channels, which may reorder, crashes of fewer than half of the processes without
recovery, and a failure detector that suspects each crashed process at last and may err:
eventually, it suspects nobody else. Guarantees uniform agreement and a total order whatever it
suspects, and that what a correct process broadcasts is delivered once it errs no more. Not
genuine: every process takes part in every broadcast, and only destinations deliver.

Trees do not go round the suspected: what the fast way needs is that everybody is there.
"""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar, final

from flexgroup.core.errors import PeerError
from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Notice, Record, Suspect, Trust
from flexgroup.core.message import Message, MessageId, Packet, origin_of, seq_of
from flexgroup.protocols.parts.delivery_log import ALL, DeliveryLog
from flexgroup.protocols.parts.hypercube import NOBODY, cluster, dimension, ff_neighbor
from flexgroup.protocols.parts.majority_agreement import (
    OPEN,
    Accept,
    Close,
    Copy,
    Decide,
    Flush,
    MajorityAgreement,
    OfRounds,
    Propose,
)
from flexgroup.protocols.parts.senders import Request, is_of_client, is_of_members
from flexgroup.protocols.parts.timestamps import FAR, Timestamps, are_timestamps


@final
class Tree(Packet):
    """TREE(m, T)."""

    epoch: int
    m: Message
    T: Timestamps


@final
class Ack(Packet):
    """ACK(m, T): everybody in the sender's part of the tree has all timestamps of m.

    And everybody there has delivered so many messages in this epoch.
    """

    epoch: int
    m: MessageId
    T: Timestamps
    count: int


InEpoch = Tree | Ack | OfRounds
"""What is about one epoch."""


@final
class Stamped(Record):
    """A message of this epoch that is not delivered yet."""

    missing: int
    """Whose timestamps are missing, as a bit mask."""
    highest: int
    """The highest timestamp that is known."""
    pending_ack: dict[Timestamps, tuple[int, int]] = {}
    """The process from which each T came that went on, and a bit mask of the clusters that have
    not confirmed it."""
    owed: list[tuple[int, Timestamps]] = []
    """What is to be confirmed to whom as soon as no timestamp is missing."""

    @property
    def is_stable(self) -> bool:
        """Tell whether all processes have all timestamps."""
        return not self.missing and not self.pending_ack


class VCubeAtomicMajority(Layer):
    __slots__ = ("TS", "agreement", "children", "early", "log", "received")

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.TOTAL})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (
        Request, Tree, Ack, Copy, Flush, Close, Propose, Accept, Decide
    )  # fmt: skip

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.TS = 0
        """The highest timestamp given or seen."""
        self.received: dict[MessageId, Stamped] = {}
        """What came in this epoch and is not delivered."""
        self.children = [
            ff_neighbor(self.process, s, self.size, set()) if s else NOBODY
            for s in range(dimension(self.size) + 1)
        ]
        """The first process of each cluster."""
        self.log = self.new_log()
        """What was delivered in this epoch, and maybe not by all."""
        self.agreement = MajorityAgreement(self.process, self.size)
        """Which epoch it is, what is undelivered, and how epochs are closed."""
        self.early: list[tuple[int, Packet]] = []
        """Packets of epochs that this process is not in yet, and their senders."""

    def new_log(self) -> DeliveryLog:
        return DeliveryLog([ALL if child == NOBODY else 0 for child in self.children])

    # Lines 7 to 13.

    def on_cast(self, m: Message) -> None:
        if self.process >= self.size:
            self.send(m.destinations[:1], Request(m))
        else:
            self.agreement.broadcast(self, m)

    def introduce(self, m: Message) -> None:
        self.TS += 1
        known = self.receive_first(m)
        self.forward(known, self.process, 1, dimension(self.size), m, (self.process, self.TS))
        self.check_deliverable(m.id)

    def receive_first(self, m: Message) -> Stamped:
        """Give m this process's timestamp."""
        others = ((1 << self.size) - 1) & ~(1 << self.process)
        known = self.received[m.id] = Stamped(others, self.TS)
        return known

    # Lines 14 to 17.

    def forward(
        self, known: Stamped, source: int, low: int, high: int, m: Message, T: Timestamps
    ) -> bool:
        """Send what came from `source` to the clusters from `low` to `high`; is anybody there?"""
        clusters = [s for s in range(low, high + 1) if self.children[s] != NOBODY]
        if clusters:
            known.pending_ack[T] = (source, sum(1 << s for s in clusters))
            packet = Tree(self.agreement.epoch, m, T)
            for s in clusters:
                self.send((self.children[s],), packet)
        return len(clusters) > 0

    # Lines 18 to 32. Who closed the epoch takes and confirms nothing more.

    def on_tree(self, j: int, packet: Tree) -> None:
        m, T = packet.m, packet.T
        agreement = self.agreement
        known = self.received.get(m.id)
        if agreement.delivered.has(m.id) or (known is not None and T in known.pending_ack):
            raise self.refuse(j, packet)
        if agreement.round == OPEN and m.id not in agreement.pending:
            agreement.hold(self, m)
            agreement.doubt(self)
        if agreement.round != OPEN:
            return
        level = cluster(self.process, j) - 1
        self.TS = max(self.TS + 1, *T[1::2])
        if known is None:
            known = self.receive_first(m)
            own = (self.process, self.TS)
            T = T + own
            self.forward(known, self.process, level + 1, dimension(self.size), m, own)
        known.highest = max(known.highest, *packet.T[1::2])
        for k in packet.T[::2]:
            known.missing &= ~(1 << k)
        if not self.forward(known, j, 1, level, m, T):
            known.owed.append((j, packet.T))
        self.check_acks(m.id, known)
        self.check_deliverable(m.id)

    # Lines 33 to 37.

    def on_ack(self, j: int, packet: Ack) -> None:
        if self.agreement.round != OPEN:
            return
        known = self.received.get(packet.m)
        s = cluster(self.process, j)
        source, awaited = NOBODY, 0
        if known is not None:
            source, awaited = known.pending_ack.get(packet.T, (source, awaited))
        if known is None or self.children[s] != j or not awaited >> s & 1:
            raise self.refuse(j, packet)
        self.log.counts[s] = max(self.log.counts[s], packet.count)
        awaited ^= 1 << s
        if awaited:
            known.pending_ack[packet.T] = (source, awaited)
            return
        del known.pending_ack[packet.T]
        if source != self.process:
            T = packet.T
            known.owed.append((source, T[:-2] if T[-2] == self.process else T))
            self.check_acks(packet.m, known)
        self.check_deliverable(packet.m)

    # Lines 38 to 52.

    def check_deliverable(self, m: MessageId) -> None:
        if not self.received[m].is_stable:
            return
        for stable in self.deliverable():
            self.log.add(stable, self.received.pop(stable).highest)
            self.agreement.deliver_once(self, stable)
        self.log.forget_if_many()

    def deliverable(self) -> list[MessageId]:
        """The stable messages that nothing can precede any more, in order.

        What lacks timestamps ends with an sn of at least the highest that is known; what has
        not been received yet, with one above TS.
        """
        places = sorted((known.highest, origin_of(m), seq_of(m), m)
                        for m, known in self.received.items())  # fmt: skip
        found: list[MessageId] = []
        for *_, m in places:
            if not self.received[m].is_stable:
                break
            found.append(m)
        return found

    # Lines 53 to 56.

    def check_acks(self, m: MessageId, known: Stamped) -> None:
        if known.missing:
            return
        for source, T in known.owed:
            confirmed = self.log.counts[: cluster(self.process, source)]
            count = min([self.log.count, *confirmed])
            self.send((source,), Ack(self.agreement.epoch, m, T, count))
        known.owed.clear()

    # The end of an epoch, as `MajorityAgreement` asks for it.

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Suspect):
            self.agreement.suspect(self, notice.process)
        elif isinstance(notice, Trust):
            self.agreement.trust(notice.process)
        self.pass_on(notice)

    def complete(self) -> tuple[int, ...]:
        places = dict(self.log.kept)
        places.update((m, known.highest) for m, known in self.received.items() if not known.missing)
        return tuple([number for place in sorted(places.items()) for number in place])

    def begin(self) -> None:
        self.received.clear()
        self.log = self.new_log()

    # Packets.

    def on_packet(self, sender: int, packet: Packet) -> None:
        epoch = self.agreement.epoch
        self.take(sender, packet)
        while self.agreement.epoch != epoch:
            epoch = self.agreement.epoch
            early, self.early = self.early, []
            for j, kept in early:
                # If it is wrong, whoever ended the epoch is not to blame.
                with suppress(PeerError):
                    self.take(j, kept)

    def take(self, sender: int, packet: Packet) -> None:
        if isinstance(packet, InEpoch):
            self.on_epoch_packet(sender, packet)
        elif isinstance(packet, Copy) and is_of_members(self, sender, packet.m):
            self.agreement.on_copy(self, packet.m)
        elif isinstance(packet, Request) and self.is_request(sender, packet.m):
            self.agreement.broadcast(self, packet.m)
        else:
            raise self.refuse(sender, packet)

    def is_request(self, client: int, m: Message) -> bool:
        return is_of_client(self, client, m) and not self.agreement.knows(m.id)

    def on_epoch_packet(self, j: int, packet: InEpoch) -> None:
        """Keep packets of later epochs, and drop those of earlier ones."""
        if not self.is_sound(j, packet):
            raise self.refuse(j, packet)
        if packet.epoch > self.agreement.epoch:
            self.early.append((j, packet))
        elif packet.epoch == self.agreement.epoch:
            if isinstance(packet, Tree):
                self.on_tree(j, packet)
            elif isinstance(packet, Ack):
                self.on_ack(j, packet)
            else:
                self.agreement.on_round(self, j, packet)

    def is_sound(self, j: int, packet: InEpoch) -> bool:
        """Tell whether a correct process may have sent it."""
        if isinstance(packet, OfRounds):
            return self.agreement.is_sound(j, packet)
        if packet.epoch >= FAR:
            return False
        if isinstance(packet, Ack):
            return j < self.size and j != self.process
        return is_of_members(self, j, packet.m) and are_timestamps(packet.T, self.size)
