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

from typing import ClassVar, Final, final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Record
from flexgroup.core.message import (
    ID,
    INT,
    INTS,
    MESSAGE,
    Fields,
    Message,
    MessageId,
    Packet,
    origin_of,
    seq_of,
)
from flexgroup.protocols.parts.destination_agreement import FAR, Request
from flexgroup.protocols.parts.epochs import Accept, Close, Copy, Decide, Flush, InEpoch, Propose
from flexgroup.protocols.parts.hypercube import NOBODY, cluster, dimension, ff_neighbor
from flexgroup.protocols.parts.majority_agreement import OPEN, MajorityAgreement

Timestamps = tuple[int, ...]
"""The paper's T, flat: a process and its timestamp, another process and its, ..."""

KEPT: Final = 16
"""Places of delivered messages that are kept without a look whether they may still be needed."""


@final
class Tree(InEpoch):
    """TREE(m, T)."""

    __slots__ = ("T", "m")
    FIELDS: ClassVar[Fields] = (("epoch", INT), ("m", MESSAGE), ("T", INTS))

    def __init__(self, epoch: int, m: Message, T: Timestamps) -> None:
        super().__init__(epoch)
        self.m = m
        self.T = T

    def is_sound(self, sender: int, to: int, size: int) -> bool:
        places, T = self.m.destinations, self.T
        if not super().is_sound(sender, to, size) or not places or places[-1] >= size:
            return False
        if not T or len(T) % 2:
            return False
        return all(T[at] < size and T[at + 1] < FAR for at in range(0, len(T), 2))


@final
class Ack(InEpoch):
    """ACK(m, T): everybody in the sender's part of the tree has all timestamps of m.

    And everybody there has delivered so many messages in this epoch.
    """

    __slots__ = ("T", "count", "m")
    FIELDS: ClassVar[Fields] = (("epoch", INT), ("m", ID), ("T", INTS), ("count", INT))

    def __init__(self, epoch: int, m: MessageId, T: Timestamps, count: int) -> None:
        super().__init__(epoch)
        self.m = m
        self.T = T
        self.count = count


@final
class Stamped(Record):
    """A message of this epoch that is not delivered yet."""

    __slots__ = ("highest", "missing", "owed", "pending_ack")

    def __init__(self, missing: int, highest: int) -> None:
        self.missing = missing
        """Whose timestamps are missing, as a bit mask."""
        self.highest = highest
        """The highest timestamp that is known."""
        self.pending_ack: dict[Timestamps, tuple[int, int]] = {}
        """From whom T came that went on, and which clusters have not confirmed it (a bit mask)."""
        self.owed: list[tuple[int, Timestamps]] = []
        """What is to be confirmed to whom as soon as no timestamp is missing."""

    def copy(self) -> Stamped:
        twin = Stamped(self.missing, self.highest)
        twin.pending_ack = dict(self.pending_ack)
        twin.owed = list(self.owed)
        return twin

    @property
    def is_stable(self) -> bool:
        """All processes have all timestamps."""
        return not self.missing and not self.pending_ack


class VCubeAtomicMajority(MajorityAgreement):
    __slots__ = ("TS", "children", "counts", "delivered", "forgotten", "look_at", "received")

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
        self.children = [
            ff_neighbor(self.process, s, self.size, set()) if s else NOBODY
            for s in range(dimension(self.size) + 1)
        ]
        """The first process of each cluster."""
        self.delivered: list[tuple[MessageId, int]] = []
        """Delivered in this epoch, with their sn, and maybe not by all."""
        self.forgotten = 0
        """How many messages were delivered in this epoch before those."""
        self.counts = [0] * len(self.children)
        """How many messages each cluster is known to have delivered in this epoch."""
        self.look_at = KEPT
        """How many delivered messages are kept before the next look at `counts`."""

    # Lines 7 to 13.

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
            packet = Tree(self.epoch, m, T)
            for s in clusters:
                self.send((self.children[s],), packet)
        return len(clusters) > 0

    def on_round_packet(self, j: int, packet: InEpoch) -> None:
        if isinstance(packet, Tree):
            self.on_tree(j, packet)
        elif isinstance(packet, Ack):
            self.on_ack(j, packet)
        else:
            super().on_round_packet(j, packet)

    # Lines 18 to 32. Who closed the epoch takes and confirms nothing more.

    def on_tree(self, j: int, packet: Tree) -> None:
        m, T = packet.m, packet.T
        known = self.received.get(m.id)
        if self.is_delivered(m.id) or (known is not None and T in known.pending_ack):
            raise self.refuse(j, packet)
        if self.round == OPEN and m.id not in self.pending:
            self.hold(m)
            self.doubt()
        if self.round != OPEN:
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
        if self.round != OPEN:
            return
        known = self.received.get(packet.m)
        s = cluster(self.process, j)
        source, awaited = NOBODY, 0
        if known is not None:
            source, awaited = known.pending_ack.get(packet.T, (source, awaited))
        if known is None or self.children[s] != j or not awaited >> s & 1:
            raise self.refuse(j, packet)
        self.counts[s] = max(self.counts[s], packet.count)
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
            sn = self.received.pop(stable).highest
            self.delivered.append((stable, sn))
            self.deliver_once(stable)
        if len(self.delivered) >= self.look_at:
            self.forget()

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
            count = self.forgotten + len(self.delivered)
            for s in range(1, cluster(self.process, source)):
                if self.children[s] != NOBODY:
                    count = min(count, self.counts[s])
            self.send((source,), Ack(self.epoch, m, T, count))
        known.owed.clear()

    # What the end of an epoch needs.

    def complete(self) -> tuple[int, ...]:
        places = dict(self.delivered)
        places.update((m, known.highest) for m, known in self.received.items() if not known.missing)
        return tuple([number for place in sorted(places.items()) for number in place])

    def begin(self) -> None:
        self.received.clear()
        self.delivered.clear()
        self.forgotten = 0
        self.counts = [0] * len(self.children)
        self.look_at = KEPT

    def forget(self) -> None:
        """What all have delivered: the same messages, for all deliver in one order."""
        stable = self.forgotten + len(self.delivered)
        for s in range(1, len(self.children)):
            if self.children[s] != NOBODY:
                stable = min(stable, self.counts[s])
        if stable > self.forgotten:
            del self.delivered[: stable - self.forgotten]
            self.forgotten = stable
        self.look_at = 2 * len(self.delivered) + KEPT
