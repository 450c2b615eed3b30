"""Directed graphs as two arrays of edge ends: what can be put in order, and what cannot."""

from __future__ import annotations

import numpy as np

from flexgroup.properties.kernels.grouping import grouped
from flexgroup.trace.history import Ints


def peel(sources: Ints, targets: Ints, count: int) -> Ints:
    """Let nodes leave once all that precede them left, as Kahn does; return who left, in order.

    Fewer than `count` nodes leave if and only if the edges form a cycle; those that stay lie
    on cycles or behind them. Linear in nodes and edges.
    """
    rows, starts = grouped(sources, count)
    followers: list[int] = targets[rows].tolist()
    bounds: list[int] = starts.tolist()
    blockers = np.bincount(targets, minlength=count)
    order: list[int] = np.flatnonzero(blockers == 0).tolist()
    waiting: list[int] = blockers.tolist()
    leave = order.append
    for node in order:
        for follower in followers[bounds[node] : bounds[node + 1]]:
            left = waiting[follower] - 1
            waiting[follower] = left
            if not left:
                leave(follower)
    return np.array(order, dtype=np.int64)


def strong_components(sources: Ints, targets: Ints, count: int) -> list[list[int]]:
    """Return the sets of nodes that reach each other, earlier sets first (Tarjan's algorithm)."""
    rows, starts = grouped(sources, count)
    followers: list[int] = targets[rows].tolist()
    bounds: list[int] = starts.tolist()
    unseen, done = 0, count + 1
    found = [unseen] * count
    lowest = [unseen] * count
    resume = bounds[:-1]
    components: list[list[int]] = []
    open_nodes: list[int] = []
    clock = 0
    for root in range(count):
        if found[root] != unseen:
            continue
        path = [root]
        while path:
            node = path[-1]
            if found[node] == unseen:
                clock += 1
                found[node] = lowest[node] = clock
                open_nodes.append(node)
            edge = resume[node]
            if edge < bounds[node + 1]:
                resume[node] = edge + 1
                follower = followers[edge]
                if found[follower] == unseen:
                    path.append(follower)
                elif found[follower] < lowest[node]:
                    lowest[node] = found[follower]
                continue
            path.pop()
            if path and lowest[node] < lowest[path[-1]]:
                lowest[path[-1]] = lowest[node]
            if lowest[node] == found[node]:
                component: list[int] = []
                member = -1
                while member != node:
                    member = open_nodes.pop()
                    found[member] = done
                    component.append(member)
                components.append(component)
    components.reverse()
    return components
