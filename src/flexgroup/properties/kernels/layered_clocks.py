"""Clocks that grow along the edges of a graph, a layer of nodes at a time.

A clock is a row of numbers; the clock of a node is, entry by entry, the largest of its own and of
those of all nodes that lead to it. A layer holds the nodes to which equally long paths lead, so
that none of them leads to another, and numpy handles them at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flexgroup.properties.kernels.grouping import grouped, scattered
from flexgroup.trace.history import Ints

Table = NDArray[np.int64]


def layers(sources: Ints, targets: Ints, count: int) -> tuple[Ints, list[int]]:
    """Return nodes in an order that edges respect, and where in it each layer ends.

    Nodes on cycles and behind them are left out. Linear in nodes and edges.
    """
    rows, starts = grouped(sources, count)
    followers: list[int] = targets[rows].tolist()
    bounds: list[int] = starts.tolist()
    blockers = np.bincount(targets, minlength=count)
    order: list[int] = np.flatnonzero(blockers == 0).tolist()
    waiting: list[int] = blockers.tolist()
    leave = order.append
    ends = [len(order)]
    begin = 0
    while begin < ends[-1]:
        for node in order[begin:]:
            for follower in followers[bounds[node] : bounds[node + 1]]:
                left = waiting[follower] - 1
                waiting[follower] = left
                if not left:
                    leave(follower)
        begin = ends[-1]
        ends.append(len(order))
    return np.array(order, dtype=np.int64), ends[:-1]


class LayeredClocks:
    """The nodes of a graph that lie on no cycle and behind none, prepared for filling in clocks.

    Their clocks are the rows of a table, in the order of `order`; `row` tells the row of a node,
    or -1.
    """

    def __init__(self, sources: Ints, targets: Ints, count: int) -> None:
        self.order, self._ends = layers(sources, targets, count)
        self.row = scattered(count, self.order, np.arange(len(self.order)))
        followed = self.row[targets] >= 0
        nodes = np.arange(len(self.order))
        inputs = np.concatenate([self.row[sources[followed]], nodes])
        of = np.concatenate([self.row[targets[followed]], nodes])
        turn, self._starts = grouped(of, len(self.order))
        self._inputs = inputs[turn]

    def grow(self, clocks: NDArray[np.signedinteger[Any]]) -> None:
        """Let the clocks grow along the edges, in place."""
        starts = self._starts
        bounds = starts.tolist()
        for begin, end in zip(self._ends, self._ends[1:], strict=False):
            first = bounds[begin]
            inputs = clocks.take(self._inputs[first : bounds[end]], axis=0)
            np.maximum.reduceat(inputs, starts[begin:end] - first, axis=0, out=clocks[begin:end])
