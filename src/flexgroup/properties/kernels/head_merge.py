"""Head merge: the delivery queues of all processes as one order, as far as there is one.

A message leaves when it heads every queue that holds it. It suffices to look at neighbours:
"delivered somewhere before" is the transitive closure of "delivered somewhere right before",
so this is Kahn's algorithm on one edge per delivery.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from flexgroup.properties.kernels.grouping import distinct, grouped, places
from flexgroup.trace.history import Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Merge:
    """All messages in an order that delivery respects everywhere, except inside cyclic components.

    A cyclic component is a largest set of messages that precede each other in circles: a strongly
    connected component of more than one message. Its members stand next to each other.
    """

    order: Ints
    components: tuple[Ints, ...]


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


def neighbours(process: Ints, message: Ints) -> tuple[Ints, Ints]:
    """Return, for every two deliveries that follow each other at a process, the first and the
    second."""
    together = process[1:] == process[:-1]
    return message[:-1][together], message[1:][together]


def head_merge(process: Ints, message: Ints, count: int) -> Merge:
    """Merge the queues given as rows; a queue holds a message at most once.

    Linear in deliveries and messages. Where the merge blocks, every cyclic component counts as one
    message, and the merge of what is left does not block.
    """
    sources, targets = neighbours(process, message)
    order = peel(sources, targets, count)
    if len(order) == count:
        return Merge(order, ())
    components = tuple(cyclic_components(process, message, count))
    leader = leaders(components, count)
    sources, targets = leader[sources], leader[targets]
    between = sources != targets
    order = peel(sources[between], targets[between], count)
    return Merge(np.argsort(places(order)[leader], kind="stable"), components)


def leaders(components: Sequence[Ints], count: int) -> Ints:
    """Return, per message, the first of its cyclic component, or itself if it is in none."""
    leader = np.arange(count)
    for component in components:
        leader[component] = component[0]
    return leader


def latest_ancestor(merge: Merge, process: Ints, message: Ints, rank: Ints) -> Ints:
    """Return, for each message, the largest rank among itself and all that are ordered before it.

    Messages of one cyclic component are ordered before each other.
    """
    count = len(merge.order)
    leader = leaders(merge.components, count)
    highest = np.full(count, -1, dtype=np.int64)
    np.maximum.at(highest, leader, rank)
    sources, targets = neighbours(process, message)
    sources, targets = leader[sources], leader[targets]
    turn = np.argsort(places(merge.order)[sources], kind="stable")
    best: list[int] = highest.tolist()
    for source, target in zip(sources[turn].tolist(), targets[turn].tolist(), strict=True):
        if best[source] > best[target]:
            best[target] = best[source]
    return np.array(best, dtype=np.int64)[leader]


def graph(sources: Ints, targets: Ints, count: int) -> csr_array:
    """Return a graph as scipy takes it, with each edge once: the search of components does not end
    where one comes twice."""
    from scipy.sparse import csr_array

    sources, targets = np.divmod(distinct(sources * count + targets), count)
    starts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(sources, minlength=count), out=starts[1:])
    ones = np.ones(len(targets), dtype=np.float64)  # the only type that is not copied
    return csr_array((ones, targets, starts), shape=(count, count))


def strong_components(sources: Ints, targets: Ints, count: int) -> Ints:
    """Return the number of each node's strongly connected component."""
    from scipy.sparse.csgraph import connected_components

    edges = graph(sources, targets, count)
    label: Ints = connected_components(edges, directed=True, connection="strong")[1]
    return label.astype(np.int64)


def cyclic_components(process: Ints, message: Ints, count: int) -> list[Ints]:
    """Return the cyclic components, each sorted, by their first messages.

    Without an order of the rest they are found several times faster than by a merge.
    """
    sources, targets = neighbours(process, message)
    if len(sources) == 0:
        return []
    label = strong_components(sources, targets, count)
    number = int(label.max()) + 1
    if number == count:
        return []
    members, starts = grouped(label, number)
    large = np.flatnonzero(np.diff(starts) > 1).tolist()
    found = [members[starts[which] : starts[which + 1]] for which in large]
    return sorted(found, key=lambda component: int(component[0]))
