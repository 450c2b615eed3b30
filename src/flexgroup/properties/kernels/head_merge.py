"""Head merge: the delivery queues of all processes as one order, as far as there is one.

A message leaves when it heads every queue that holds it. It suffices to look at neighbours:
"delivered somewhere before" is the transitive closure of "delivered somewhere right before",
so this is Kahn's algorithm on one edge per delivery.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexgroup.properties.kernels.graphs import peel, strong_components
from flexgroup.properties.kernels.grouping import grouped
from flexgroup.trace.history import Ints, no_ints


@dataclass(frozen=True)
class Merge:
    """All messages in an order that delivery respects everywhere, except inside cyclic components.

    A cyclic component is a largest set of messages that precede each other in circles: a strongly
    connected component of more than one message. Its members stand next to each other.
    """

    order: Ints
    components: tuple[Ints, ...]


def neighbours(process: Ints, message: Ints) -> tuple[Ints, Ints]:
    """Return, for every two deliveries that follow each other at a process, the first and the
    second."""
    together = process[1:] == process[:-1]
    return message[:-1][together], message[1:][together]


def head_merge(process: Ints, message: Ints, count: int) -> Merge:
    """Merge the queues given as rows; a queue holds a message at most once.

    Linear in deliveries and messages. Where the merge blocks, what is only behind the cycles
    is peeled off from the other end, and what remains is split into cyclic components.
    """
    sources, targets = neighbours(process, message)
    head = peel(sources, targets, count)
    if len(head) == count:
        return Merge(head, ())
    blocked, sources, targets = _without(head, sources, targets, count)
    tail = peel(targets, sources, len(blocked))
    core, sources, targets = _without(tail, sources, targets, len(blocked))
    components = [
        blocked[core[np.array(component)]]
        for component in strong_components(sources, targets, len(core))
    ]
    order = np.concatenate([head, *components, blocked[tail[::-1]]])
    return Merge(order, tuple(np.sort(members) for members in components if len(members) > 1))


def _without(gone: Ints, sources: Ints, targets: Ints, count: int) -> tuple[Ints, Ints, Ints]:
    """Return the nodes that stay, and the edges between them, renumbered by their place among
    those."""
    stays = np.ones(count, dtype=np.bool_)
    stays[gone] = False
    left = np.flatnonzero(stays)
    place = np.full(count, -1, dtype=np.int64)
    place[left] = np.arange(len(left))
    inside = stays[sources] & stays[targets]
    return left, place[sources[inside]], place[targets[inside]]


def latest_ancestor(merge: Merge, process: Ints, message: Ints, rank: Ints) -> Ints:
    """Return, for each message, the largest rank among itself and all that are ordered before it.

    Messages of one cyclic component are ordered before each other.
    """
    count = len(merge.order)
    leader = np.arange(count)
    for component in merge.components:
        leader[component] = component[0]
    highest = np.full(count, -1, dtype=np.int64)
    np.maximum.at(highest, leader, rank)
    sources, targets = neighbours(process, message)
    sources, targets = leader[sources], leader[targets]
    by_place = np.empty(count, dtype=np.int64)
    by_place[merge.order] = np.arange(count)
    turn = np.argsort(by_place[sources], kind="stable") if len(sources) else no_ints()
    best: list[int] = highest.tolist()
    for source, target in zip(sources[turn].tolist(), targets[turn].tolist(), strict=True):
        if best[source] > best[target]:
            best[target] = best[source]
    return np.array(best, dtype=np.int64)[leader]


def cyclic_components(process: Ints, message: Ints, count: int) -> list[Ints]:
    """Return the cyclic components, each sorted, without an order of the rest.

    They are the same as those of the head merge, and found several times faster.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    sources, targets = neighbours(process, message)
    edges = coo_array(
        (np.ones(len(sources), dtype=np.int8), (sources, targets)), shape=(count, count)
    )
    number, label = connected_components(edges.tocsr(), directed=True, connection="strong")
    if number == count:
        return []
    members, starts = grouped(label.astype(np.int64), number)
    large = np.flatnonzero(np.diff(starts) > 1).tolist()
    found = [members[starts[which] : starts[which + 1]] for which in large]
    return sorted(found, key=lambda component: int(component[0]))
