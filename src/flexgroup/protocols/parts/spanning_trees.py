"""One process's part in VCube's spanning trees: what it sent on, and what is not confirmed.

Source: lines 14 to 17 and 33 to 65 of algorithm 1 of Ruchel and others 2021, without its order;
the names are kept. Who has confirmations from all it sent to confirms to where it came from. If a
process crashes, what it has not confirmed goes to the next of its cluster.
"""

from __future__ import annotations

from typing import final

from flexgroup.core.layer import Layer, Record
from flexgroup.core.message import Packet
from flexgroup.protocols.parts.hypercube import NOBODY, cluster, ff_neighbor, neighborhood

Key = tuple[int, ...]
"""What an ACK names: a message and, where it travels in several trees, which one."""


@final
class SpanningTrees(Record):
    process: int
    size: int
    crashed: set[int] = set()
    """The processes that are not in correct(i)."""
    pending_ack: dict[tuple[int, Key], tuple[Packet, tuple[int, ...]]] = {}
    """The TREE that went to p and is not confirmed, and from whom it came."""
    awaited: dict[tuple[int, Key], int] = {}
    """How much of what came from a source and went on is not confirmed."""

    # Lines 14 to 17.

    def forward(self, layer: Layer, source: int, s: int, key: Key, tree: Packet) -> None:
        for p in neighborhood(self.process, 1, s, self.size, self.crashed):
            self.send_tree(layer, source, p, key, tree)

    def send_tree(self, layer: Layer, source: int, p: int, key: Key, tree: Packet) -> None:
        unconfirmed = self.pending_ack.get((p, key))
        if unconfirmed is None:
            layer.send((p,), tree)
            self.pending_ack[p, key] = (tree, (source,))
        elif source in unconfirmed[1]:
            return
        else:
            self.pending_ack[p, key] = (tree, (*unconfirmed[1], source))
        self.awaited[source, key] = self.awaited.get((source, key), 0) + 1

    # Lines 33 to 37, and 53 to 56.

    def confirm(self, p: int, key: Key) -> list[int]:
        """Process p is done with it, or gone: from whom came what all have confirmed now?"""
        _, sources = self.pending_ack.pop((p, key))
        for source in sources:
            self.awaited[source, key] -= 1
        return [source for source in sources if self.is_confirmed(source, key)]

    def is_confirmed(self, source: int, key: Key) -> bool:
        """Tell whether all have confirmed what came from there; then it is forgotten."""
        if self.awaited.get((source, key), 0):
            return False
        self.awaited.pop((source, key), None)
        return True

    # Lines 57 to 65.

    def crash(self, layer: Layer, j: int) -> list[tuple[int, Key]]:
        """Replace process j: what have all confirmed that are left, and from whom did it come?"""
        self.crashed.add(j)
        k = ff_neighbor(self.process, cluster(self.process, j), self.size, self.crashed)
        confirmed: list[tuple[int, Key]] = []
        for p, key in sorted(self.pending_ack):
            if p == j:
                tree, sources = self.pending_ack[j, key]
                if k != NOBODY:
                    for source in sources:
                        self.send_tree(layer, source, k, key, tree)
                confirmed += [(source, key) for source in self.confirm(j, key)]
        return confirmed
