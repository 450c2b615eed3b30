"""Atomic broadcast over VCube's spanning trees, corrected.

Source: after algorithm 1 of Ruchel and others 2021, whose names and lines are used here;
`vcube-atomic-published` is that algorithm. A process that hears of a message gives it a timestamp
and tells it to all through a tree with itself as the root; the timestamp of a process on the way
travels in the packets that pass it anyway. A message with the timestamps of all is ordered by
the highest.

Assumes reliable channels, which may reorder, crashes without recovery, any number of them, and
a perfect failure detector: `Suspect` comes for every crash, and for nothing else. Guarantees total
order and agreement among the processes that do not crash. Not genuine: every process takes part
in every broadcast, and only destinations deliver.

Differs from the algorithm as printed, where it goes wrong (docs/protocols/vcube-atomic.md):
- After a crash the processes agree which timestamps of the crashed count, with FLUSH and AGREED,
  before any message is stamped without them.
- What went to a crashed child goes to the next one even if the parent crashed as well (line 60).
- Ties are broken by the source and then by its number for the message (line 51); a broadcast
  advances the clock before it takes a timestamp (lines 9 to 11).
- ACK names the timestamps as they came, and goes to whoever is not this process (lines 32, 55).
"""

from __future__ import annotations

from typing import ClassVar, final

from mypy_extensions import mypyc_attr

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer, Notice, Record, Suspect
from flexgroup.core.message import Message, MessageId, Packet
from flexgroup.protocols.parts.delivery_log import ALL, DeliveryLog
from flexgroup.protocols.parts.destination_agreement import Agreed, DestinationAgreement, Flush
from flexgroup.protocols.parts.hypercube import (
    NOBODY,
    cluster,
    dimension,
    ff_neighbor,
    neighborhood,
)
from flexgroup.protocols.parts.senders import Request, is_of_client, is_of_members
from flexgroup.protocols.parts.timestamps import Timestamps, are_timestamps


@final
@mypyc_attr(acyclic=True)
class Tree(Packet):
    """TREE(m, T)."""

    m: Message
    T: Timestamps


@final
@mypyc_attr(acyclic=True)
class Ack(Packet):
    """ACK(m, T): everybody in the sender's part of the tree has it.

    Not in the paper: everybody in that part has delivered so many messages.
    """

    m: MessageId
    T: Timestamps
    count: int


class VCubeAtomic(Layer):
    __slots__ = ("agreement", "pending_ack")

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.TOTAL})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Request, Tree, Ack, Flush, Agreed)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        log = DeliveryLog([ALL] + [0] * dimension(self.size))
        self.agreement = DestinationAgreement(self.process, self.size, log)
        """TS, correct(i), received(i) and stamped(i); and what is ours, after a crash."""
        self.pending_ack: dict[MessageId, Trees] = {}
        """What was sent on in the trees of each message, and is not confirmed."""
        self.count_clusters()

    # Lines 7 to 13.

    def on_cast(self, m: Message) -> None:
        if self.process >= self.size:
            self.send(m.destinations[:1], Request(m))
        elif not self.agreement.stopped:
            self.a_broadcast(m)

    def a_broadcast(self, m: Message) -> None:
        agreement = self.agreement
        agreement.TS += 1
        known = agreement.receive_first(m)
        own = (self.process, agreement.TS)
        self.forward(self.process, 1, dimension(self.size), m, own)
        agreement.check_deliverable(self, known)

    # Lines 14 to 17.

    def forward(self, source: int, low: int, high: int, m: Message, T: Timestamps) -> bool:
        """Send what came from `source` to the clusters from `low` to `high`; is anybody there?

        It does not go again to who has it and has not confirmed it.
        """
        agreement = self.agreement
        to = neighborhood(self.process, low, high, self.size, agreement.crashed)
        if not to:
            return False
        trees = self.pending_ack.get(m.id)
        before = trees.of_root[T[0]] if trees is not None else None
        awaited = before.awaited(T) if before is not None else 0
        clusters = 0
        packet = Tree(m, T)
        for p in to:
            s = cluster(self.process, p)
            clusters |= 1 << s
            if not awaited >> s & 1:
                self.send((p,), packet)
        forwarded = before.entry(T, source) if before is not None else None
        if forwarded is None:
            forwarded = Forwarded(m, T, source, before)
            if trees is None:
                trees = self.pending_ack[m.id] = Trees([None] * self.size)
            trees.put(T[0], forwarded)
            known = agreement.received.get(m.id)
            if known is not None:
                known.pending += 1
        forwarded.clusters |= clusters
        return True

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

    # Lines 18 to 32.

    def on_tree(self, j: int, packet: Tree) -> None:
        if not is_of_members(self, j, packet.m) or not are_timestamps(packet.T, self.size):
            raise self.refuse(j, packet)
        agreement = self.agreement
        crashed = agreement.crashed
        if crashed and j in crashed:
            return
        m, T = packet.m, packet.T
        level = cluster(self.process, j) - 1
        agreement.TS += 1
        for at in range(1, len(T), 2):
            agreement.TS = max(agreement.TS, T[at])
        known = agreement.received.get(m.id)
        if known is None and not agreement.delivered.has(m.id):
            known = agreement.receive_first(m)
            own = (self.process, agreement.TS)
            T = T + own
            self.forward(self.process, level + 1, dimension(self.size), m, own)
        if known is not None:
            for at in range(0, len(packet.T), 2):
                if not (crashed and packet.T[at] in crashed):
                    known.hear(packet.T[at], packet.T[at + 1])
        awaited = self.forward(j, 1, level, m, T)
        if known is not None:
            agreement.check_deliverable(self, known)
        if not awaited:
            self.ack(j, m.id, T)

    # Lines 33 to 37.

    def on_ack(self, j: int, packet: Ack) -> None:
        crashed = self.agreement.crashed
        if crashed and j in crashed:
            return
        T = packet.T
        s = cluster(self.process, j)
        trees = self.pending_ack.get(packet.m)
        forwarded = trees.of_root[T[0]] if trees is not None and T and T[0] < self.size else None
        if forwarded is None or not forwarded.awaited(T) >> s & 1 or self.ff_neighbor(s) != j:
            raise self.refuse(j, packet)
        if packet.count:
            counts = self.agreement.log.counts
            counts[s] = max(counts[s], packet.count)
        self.confirm(s, T, forwarded)

    def confirm(self, s: int, T: Timestamps, forwarded: Forwarded) -> None:
        """FF_neighbor(s), to which (m, T) went, is done with it, or nobody is left there."""
        sources = forwarded.confirm(s, T)
        if not sources:
            return
        m = forwarded.m.id
        trees = self.pending_ack[m]
        trees.put(T[0], forwarded.rest())
        if not trees.count:
            del self.pending_ack[m]
        known = self.agreement.received.get(m)
        if known is not None:
            known.pending -= len(sources)
            self.agreement.check_deliverable(self, known)
        for source in sources:
            self.ack(source, m, T)

    # Lines 38 to 52 are `DestinationAgreement.check_deliverable`. Lines 53 to 56:

    def ack(self, source: int, m: MessageId, T: Timestamps) -> None:
        crashed = self.agreement.crashed
        if source != self.process and not (crashed and source in crashed):
            came = T[:-2] if T[-2] == self.process else T
            log = self.agreement.log
            count = log.count
            for s in range(1, cluster(self.process, source)):
                count = min(count, log.counts[s])
            self.send((source,), Ack(m, came, count))

    # Lines 57 to 67; FLUSH and AGREED are ours.

    def on_notice(self, notice: Notice) -> None:
        if isinstance(notice, Suspect) and self.agreement.is_news(notice):
            self.crash((notice.process,))
        self.pass_on(notice)

    def crash(self, crashed: tuple[int, ...]) -> None:
        """Send to their successors what the crashed have not confirmed."""
        before = self.agreement.crashed.copy()
        self.agreement.exclude(crashed)
        clusters = range(1, dimension(self.size) + 1)
        lost = {ff_neighbor(self.process, s, self.size, before): s for s in clusters}
        for j in crashed:
            if j in lost:
                for m in sorted(self.pending_ack):
                    for forwarded in list(self.pending_ack[m].of_root):
                        if forwarded is not None:
                            self.replace(lost[j], forwarded)
        self.count_clusters()
        self.agreement.flush(self)

    def replace(self, s: int, forwarded: Forwarded) -> None:
        """Send what was not confirmed in cluster s to who is FF_neighbor(s) now."""
        k = self.ff_neighbor(s)
        for T in sorted(forwarded.awaited_from(s)):
            if k != NOBODY:
                self.send((k,), Tree(forwarded.m, T))
            else:
                self.confirm(s, T, forwarded)

    def on_flush(self, j: int, packet: Flush) -> None:
        news = self.agreement.crashes_in(self, j, packet)
        if news:
            self.crash(news)
        self.agreement.on_flush(self, j, packet)

    def ff_neighbor(self, s: int) -> int:
        return ff_neighbor(self.process, s, self.size, self.agreement.crashed)

    def count_clusters(self) -> None:
        """Count clusters in which nobody is left as if they had delivered all there is."""
        counts = self.agreement.log.counts
        for s in range(1, len(counts)):
            if self.ff_neighbor(s) == NOBODY:
                counts[s] = ALL


# pending_ack(i): what a process waits for. An entry says that (m, T) came from a source and went to
# a child that has not confirmed it. The child is always FF_neighbor(s) of some cluster s: when that
# crashes, its successor takes its place in all entries. So the cluster stands for the child here,
# and entries that differ in nothing else are one record. Every process has hundreds of them, and
# looks one up for each ACK.


@final
@mypyc_attr(acyclic=True)
class Forwarded(Record):
    """The entries of pending_ack(i) that differ in nothing but the child."""

    m: Message
    T: Timestamps
    source: int
    """The process from which (m, T) came."""
    other: Forwarded | None
    """Entries for m in the same tree, with another T or source; only after crashes."""
    clusters: int = 0
    """The clusters s whose FF_neighbor it went to and has not confirmed it, as bits s."""

    def entry(self, T: Timestamps, source: int) -> Forwarded | None:
        """The entries for (m, T) that came from `source`."""
        if self.source == source and self.T == T:
            return self
        return self.other.entry(T, source) if self.other is not None else None

    def awaited(self, T: Timestamps) -> int:
        """The clusters that have not confirmed (m, T), whoever it came from."""
        mine = self.clusters if self.T == T else 0
        return mine | self.other.awaited(T) if self.other is not None else mine

    def awaited_from(self, s: int) -> set[Timestamps]:
        """Every T of which cluster s has not confirmed (m, T)."""
        found = self.other.awaited_from(s) if self.other is not None else set()
        if self.clusters >> s & 1:
            found.add(self.T)
        return found

    def confirm(self, s: int, T: Timestamps) -> list[int]:
        """Cluster s confirms (m, T): from whom came what all have confirmed now?"""
        done = self.other.confirm(s, T) if self.other is not None else []
        if self.clusters >> s & 1 and self.T == T:
            self.clusters ^= 1 << s
            if not self.clusters:
                done.append(self.source)
        return done

    def rest(self) -> Forwarded | None:
        """What is left when all is left out that nobody has to confirm any more."""
        if self.other is not None:
            self.other = self.other.rest()
        return self if self.clusters else self.other


@final
class Trees(Record):
    """The entries of pending_ack(i) for one message, by the root of the tree: the first in T."""

    of_root: list[Forwarded | None]
    count: int = 0
    """The number of trees in which something is awaited."""

    def put(self, root: int, forwarded: Forwarded | None) -> None:
        if self.of_root[root] is None:
            self.count += 1
        if forwarded is None:
            self.count -= 1
        self.of_root[root] = forwarded
