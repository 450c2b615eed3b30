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
from flexgroup.core.layer import Context, Record
from flexgroup.core.message import (
    ID,
    INT,
    INTS,
    MESSAGE,
    ORIGIN_BITS,
    Fields,
    Message,
    MessageId,
    Packet,
)
from flexgroup.protocols.destination_agreement import ALL, DestinationAgreement
from flexgroup.protocols.hypercube import NOBODY, cluster, dimension, ff_neighbor, neighborhood
from flexgroup.protocols.timestamped import FAR, Agreed, Flush, Request

Timestamps = tuple[int, ...]
"""The paper's T, flat: a process and its timestamp, another process and its, ..."""


@final
@mypyc_attr(acyclic=True)
class Tree(Packet):
    """TREE(m, T)."""

    __slots__ = ("T", "m")
    FIELDS: ClassVar[Fields] = (("m", MESSAGE), ("T", INTS))

    def __init__(self, m: Message, T: Timestamps) -> None:
        self.m = m
        self.T = T


@final
@mypyc_attr(acyclic=True)
class Ack(Packet):
    """ACK(m, T): everybody in the sender's part of the tree has it.

    Not in the paper: everybody in that part has delivered so many messages.
    """

    __slots__ = ("T", "count", "m")
    FIELDS: ClassVar[Fields] = (("m", ID), ("T", INTS), ("count", INT))

    def __init__(self, m: MessageId, T: Timestamps, count: int) -> None:
        self.m = m
        self.T = T
        self.count = count


@final
class Forwarded(Record):
    """The entries of pending_ack(i) for m in the tree of one process."""

    __slots__ = ("entries", "m")

    def __init__(self, m: Message) -> None:
        self.m = m
        self.entries: list[tuple[int, int, Timestamps]] = []
        """From whom (m, T) came, to whom it went that has not confirmed it, and T."""

    def copy(self) -> Forwarded:
        twin = Forwarded(self.m)
        twin.entries = list(self.entries)
        return twin

    def sources(self, p: int, T: Timestamps) -> list[int]:
        """From whom came what went to p as (m, T)."""
        return [parent for parent, child, sent in self.entries if child == p and sent == T]

    def is_awaited_by(self, source: int, T: Timestamps) -> bool:
        return any(parent == source and sent == T for parent, _, sent in self.entries)


def tree_of(m: MessageId, T: Timestamps) -> int:
    """A key for m in the tree of the first process in T."""
    return (m << ORIGIN_BITS) | T[0]


class VCubeAtomic(DestinationAgreement):
    __slots__ = ("pending_ack",)

    NEEDS: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE})
    GIVES: ClassVar[Guarantees] = frozenset({Guarantee.RELIABLE, Guarantee.TOTAL})
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Request, Tree, Ack, Flush, Agreed)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.pending_ack: dict[int, Forwarded] = {}
        """By `tree_of` (m, T)."""
        self.counts = [ALL] + [0] * dimension(self.size)
        self.count_clusters()

    # Lines 7 to 13 are in DestinationAgreement.a_broadcast, but for the last.

    def spread(self, m: Message) -> None:
        self.forward(self.process, 1, dimension(self.size), m, (self.process, self.TS))

    # Lines 14 to 17.

    def forward(self, source: int, low: int, high: int, m: Message, T: Timestamps) -> bool:
        """Send what came from `source` to the clusters from `low` to `high`; is anybody there?"""
        to = neighborhood(self.process, low, high, self.size, self.crashed)
        if to:
            self.send_tree(source, to, m, T)
        return len(to) > 0

    def send_tree(self, source: int, to: list[int], m: Message, T: Timestamps) -> None:
        """Send what came from `source`, but not again to who has it and has not confirmed it."""
        tree = tree_of(m.id, T)
        forwarded = self.pending_ack.get(tree)
        if forwarded is None:
            forwarded = self.pending_ack[tree] = Forwarded(m)
        packet = Tree(m, T)
        before = len(forwarded.entries)
        for p in to:
            sources = forwarded.sources(p, T)
            if not sources:
                self.send((p,), packet)
            if source not in sources:
                forwarded.entries.append((source, p, T))
        known = self.received.get(m.id)
        if known is not None:
            known.pending += len(forwarded.entries) - before

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

    # Lines 18 to 32.

    def on_tree(self, j: int, packet: Tree) -> None:
        if not self.is_tree(j, packet):
            raise self.refuse(j, packet)
        if j in self.crashed:
            return
        m, T = packet.m, packet.T
        level = cluster(self.process, j) - 1
        self.TS += 1
        for at in range(1, len(T), 2):
            self.TS = max(self.TS, T[at])
        known = self.received.get(m.id)
        if known is None and not self.is_delivered(m.id):
            known = self.receive_first(m)
            own = (self.process, self.TS)
            T = T + own
            self.forward(self.process, level + 1, dimension(self.size), m, own)
        if known is not None:
            for at in range(0, len(packet.T), 2):
                if packet.T[at] not in self.crashed:
                    known.hear(packet.T[at], packet.T[at + 1])
        awaited = self.forward(j, 1, level, m, T)
        if known is not None:
            self.check_deliverable(known)
        if not awaited:
            self.ack(j, m.id, T)

    def is_tree(self, j: int, packet: Tree) -> bool:
        """Such as a correct process sends: processes that exist, each with its timestamp."""
        to, T = packet.m.destinations, packet.T
        if j >= self.size or j == self.process or not to or to[-1] >= self.size:
            return False
        if not T or len(T) % 2:
            return False
        return all(T[at] < self.size and T[at + 1] < FAR for at in range(0, len(T), 2))

    # Lines 33 to 37.

    def on_ack(self, j: int, packet: Ack) -> None:
        if j in self.crashed:
            return
        forwarded = self.pending_ack.get(tree_of(packet.m, packet.T)) if packet.T else None
        sources = forwarded.sources(j, packet.T) if forwarded is not None else []
        if forwarded is None or not sources:
            raise self.refuse(j, packet)
        s = cluster(self.process, j)
        self.counts[s] = max(self.counts[s], packet.count)
        self.confirm(j, packet.T, forwarded, sources)

    def confirm(self, j: int, T: Timestamps, forwarded: Forwarded, sources: list[int]) -> None:
        """Process j, to which (m, T) went from these sources, is done with it, or gone."""
        m = forwarded.m.id
        for source in sources:
            forwarded.entries.remove((source, j, T))
        if not forwarded.entries:
            del self.pending_ack[tree_of(m, T)]
        known = self.received.get(m)
        if known is not None:
            known.pending -= len(sources)
            self.check_deliverable(known)
        for source in sources:
            if not forwarded.is_awaited_by(source, T):
                self.ack(source, m, T)

    # Lines 38 to 52 are DestinationAgreement.check_deliverable. Lines 53 to 56:

    def ack(self, source: int, m: MessageId, T: Timestamps) -> None:
        if source != self.process and source not in self.crashed:
            came = T[:-2] if T[-2] == self.process else T
            count = self.count()
            for s in range(1, cluster(self.process, source)):
                count = min(count, self.counts[s])
            self.send((source,), Ack(m, came, count))

    # Lines 57 to 67, but for what DestinationAgreement.crash does.

    def take_over(self, crashed: tuple[int, ...]) -> None:
        for j in crashed:
            for tree in sorted(self.pending_ack):
                forwarded = self.pending_ack[tree]
                for T in sorted({sent for _, child, sent in forwarded.entries if child == j}):
                    self.replace(j, T, forwarded)
        self.count_clusters()

    def replace(self, j: int, T: Timestamps, forwarded: Forwarded) -> None:
        """Send what j has not confirmed to the next process in its cluster."""
        k = ff_neighbor(self.process, cluster(self.process, j), self.size, self.crashed)
        sources = forwarded.sources(j, T)
        if k != NOBODY:
            for source in sources:
                self.send_tree(source, [k], forwarded.m, T)
        self.confirm(j, T, forwarded, sources)

    def count_clusters(self) -> None:
        """Clusters in which nobody is left have delivered all there is."""
        for s in range(1, len(self.counts)):
            if ff_neighbor(self.process, s, self.size, self.crashed) == NOBODY:
                self.counts[s] = ALL
