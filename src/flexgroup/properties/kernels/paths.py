"""Shortest ways from one message to another through "some process delivered it before"."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flexgroup.properties.kernels.rows import grouped
from flexgroup.trace.history import Ints

Link = tuple[int, int]
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

    def shortest_path(self, source: int, target: int) -> list[Link] | None:
        """The links of a shortest path; with source = target, of a shortest cycle through it.

        Breadth first. Of each queue only the part before what was already reached is read,
        so the cost is linear in rows.
        """
        message, holders, bounds, ends = self._message, self._holders, self._bounds, self._ends
        reached: dict[int, int] = {}
        how: dict[int, Link] = {}
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

    def _links(self, how: dict[int, Link], source: int, target: int) -> list[Link]:
        links = [how[target]]
        while (node := self._message[links[-1][0]]) != source:
            links.append(how[node])
        links.reverse()
        return links


def shortest_cycle(
    process: Ints, message: Ints, knots: Sequence[Ints], at_least: int, budget: int
) -> list[Link]:
    """A shortest cycle in the given knots, of which there is at least one.

    The rows are those of messages in knots, and knots are sorted. Small knots are searched
    first, from every message, until a cycle of length `at_least` turns up, which the caller
    knows to be the least possible. About `budget` rows are read: in knots too large for it only
    the first messages serve as starting points, and the cycle is a shortest one through those.
    """
    knot_of = np.empty(int(message.max()) + 1, dtype=np.int64)
    for number, knot in enumerate(knots):
        knot_of[knot] = number
    by_knot, bounds = grouped(knot_of[message], len(knots))
    best: list[Link] = []
    for number in sorted(range(len(knots)), key=lambda number: len(knots[number])):
        knot, rows = knots[number], by_knot[bounds[number] : bounds[number + 1]]
        queues = QueueSearch(process[rows], np.searchsorted(knot, message[rows]), len(knot))
        starting_points = min(len(knot), max(1, budget // len(rows)))
        for start in range(starting_points):
            links = queues.shortest_path(start, start)
            if links is not None and (not best or len(links) < len(best)):
                best = [(int(rows[first]), int(rows[second])) for first, second in links]
            if len(best) == at_least:
                return best
        budget = max(0, budget - starting_points * len(rows))
    return best
