"""What a process waits for in VCube's spanning trees: pending_ack(i) of `vcube_atomic`.

An entry says that (m, T) came from a source and went to a child that has not confirmed it. The
child is always FF_neighbor(s) of some cluster s: when that crashes, its successor takes its place
in all entries. So the cluster stands for the child here, and entries that differ in nothing else
are one record. Every process has hundreds of them, and looks one up for each ACK.
"""

from __future__ import annotations

from typing import final

from mypy_extensions import mypyc_attr

from flexgroup.core.layer import Record
from flexgroup.core.message import Message
from flexgroup.protocols.parts.timestamps import Timestamps


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
