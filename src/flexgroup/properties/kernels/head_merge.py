"""Head merge: the delivery queues of all processes as one order, as far as there is one.

A message leaves when it heads every queue that holds it. It suffices to look at neighbours:
"delivered somewhere before" is the transitive closure of "delivered somewhere right before",
so this is Kahn's algorithm on one edge per delivery.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexgroup.properties.kernels.graphs import peel, strong_components
from flexgroup.trace.history import Ints, no_ints


@dataclass(frozen=True)
class Merge:
    """All messages in an order that delivery respects everywhere, except inside knots.

    A knot is a largest set of messages that precede each other in circles; the members of
    a knot stand next to each other in the order.
    """

    order: Ints
    knots: tuple[Ints, ...]


def neighbours(process: Ints, message: Ints) -> tuple[Ints, Ints]:
    """For every two deliveries that follow each other at a process, the first and the second."""
    together = process[1:] == process[:-1]
    return message[:-1][together], message[1:][together]


def head_merge(process: Ints, message: Ints, count: int) -> Merge:
    """Merge the queues given as rows; a queue holds a message at most once.

    Linear in deliveries and messages. Where the merge blocks, what is only behind the cycles
    is peeled off from the other end, and what remains is split into knots.
    """
    sources, targets = neighbours(process, message)
    head = peel(sources, targets, count)
    if len(head) == count:
        return Merge(head, ())
    blocked, sources, targets = _without(head, sources, targets, count)
    tail = peel(targets, sources, len(blocked))
    core, sources, targets = _without(tail, sources, targets, len(blocked))
    components = strong_components(sources, targets, len(core))
    knotted = [blocked[core[np.array(component)]] for component in components]
    order = np.concatenate([head, *knotted, blocked[tail[::-1]]])
    return Merge(order, tuple(np.sort(knot) for knot in knotted if len(knot) > 1))


def _without(gone: Ints, sources: Ints, targets: Ints, count: int) -> tuple[Ints, Ints, Ints]:
    """The nodes that stay, and the edges between them, renumbered by their place among those."""
    stays = np.ones(count, dtype=np.bool_)
    stays[gone] = False
    left = np.flatnonzero(stays)
    place = np.full(count, -1, dtype=np.int64)
    place[left] = np.arange(len(left))
    inside = stays[sources] & stays[targets]
    return left, place[sources[inside]], place[targets[inside]]


def latest_ancestor(merge: Merge, process: Ints, message: Ints, rank: Ints) -> Ints:
    """For each message, the largest rank among itself and all that are ordered before it.

    Being in one knot is being ordered before each other.
    """
    count = len(merge.order)
    component = np.arange(count)
    for knot in merge.knots:
        component[knot] = knot[0]
    highest = np.full(count, -1, dtype=np.int64)
    np.maximum.at(highest, component, rank)
    sources, targets = neighbours(process, message)
    sources, targets = component[sources], component[targets]
    by_place = np.empty(count, dtype=np.int64)
    by_place[merge.order] = np.arange(count)
    turn = np.argsort(by_place[sources], kind="stable") if len(sources) else no_ints()
    best: list[int] = highest.tolist()
    for source, target in zip(sources[turn].tolist(), targets[turn].tolist(), strict=True):
        if best[source] > best[target]:
            best[target] = best[source]
    return np.array(best, dtype=np.int64)[component]
