"""Shortest ways from one message to another through "some process delivered it before"."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flexgroup.properties.kernels.grouping import grouped
from flexgroup.trace.history import Ints

RowPair = tuple[int, int]
"""Two delivery rows of one process, the earlier first."""


class QueueSearch:
    """Delivery rows prepared for searching; a queue holds a message at most once."""

    __slots__ = ("_bounds", "_ends", "_holders", "_message")

    def __init__(self, process: Ints, message: Ints, count: int) -> None:
        holders, bounds = grouped(message, count)
        self._message: list[int] = message.tolist()
        self._holders: list[int] = holders.tolist()
        self._bounds: list[int] = bounds.tolist()
        self._ends: list[int] = np.searchsorted(process, process, side="right").tolist()

    def shortest_path(self, source: int, target: int) -> list[RowPair] | None:
        """Return the links of a shortest path; with source = target, of a shortest cycle through
        it.

        The search is breadth first. Only that part of a queue is read that comes before what was
        already reached, so the cost is linear in rows.
        """
        message, holders, bounds, ends = self._message, self._holders, self._bounds, self._ends
        reached: dict[int, int] = {}
        how: dict[int, RowPair] = {}
        frontier = [source]
        for node in frontier:
            for row in holders[bounds[node] : bounds[node + 1]]:
                end = ends[row]
                for later in range(row + 1, reached.get(end, end)):
                    follower = message[later]
                    if follower not in how and follower != source:
                        how[follower] = (row, later)
                        frontier.append(follower)
                    if follower == target:
                        how[target] = how.get(target, (row, later))
                        return self._links(how, source, target)
                reached[end] = min(row + 1, reached.get(end, end))
        return None

    def _links(self, how: dict[int, RowPair], source: int, target: int) -> list[RowPair]:
        links = [how[target]]
        while (node := self._message[links[-1][0]]) != source:
            links.append(how[node])
        links.reverse()
        return links


def shortest_cycle(
    process: Ints, message: Ints, components: Sequence[Ints], at_least: int, budget: int
) -> list[RowPair]:
    """Return a shortest cycle in the given cyclic components, of which there is at least one.

    The rows are those of messages in components, and components are sorted. Small ones are
    searched first, from every message, until a cycle of length `at_least` turns up, which the
    caller knows to be the least possible. About `budget` rows are read: in components too large
    for it only the first messages serve as starting points, and the cycle is a shortest one
    through those.
    """
    component_of = np.empty(int(message.max()) + 1, dtype=np.int64)
    for number, component in enumerate(components):
        component_of[component] = number
    by_component, bounds = grouped(component_of[message], len(components))
    best: list[RowPair] = []
    for number in sorted(range(len(components)), key=lambda number: len(components[number])):
        component, rows = components[number], by_component[bounds[number] : bounds[number + 1]]
        queues = QueueSearch(
            process[rows], np.searchsorted(component, message[rows]), len(component)
        )
        starting_points = min(len(component), max(1, budget // len(rows)))
        for start in range(starting_points):
            links = queues.shortest_path(start, start)
            if links is not None and (not best or len(links) < len(best)):
                best = [(int(rows[first]), int(rows[second])) for first, second in links]
            if len(best) == at_least:
                return best
        budget = max(0, budget - starting_points * len(rows))
    return best
