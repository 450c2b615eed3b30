"""Whether the orders in which processes delivered messages can be merged into one order.

One message precedes another if some process delivered the one and then the other. This is the
definition of acyclic order for a handful of messages: the explorer, the bench and the tests ask
it many thousands of times a second. `flexgroup.properties` has the same check for recorded runs
of millions of deliveries.
"""

from __future__ import annotations

from flexgroup.core.message import MessageId


def is_acyclic(orders: list[list[MessageId]]) -> bool:
    """Tell whether no message precedes itself, directly or through others."""
    return not _blocked(orders)


def find_cycle(orders: list[list[MessageId]]) -> list[MessageId] | None:
    """Return a shortest cycle of messages, each of which precedes the next, or None."""
    blocked = _blocked(orders)
    if not blocked:
        return None
    after: dict[MessageId, set[MessageId]] = {}
    for order in blocked:
        for position, m in enumerate(order):
            after.setdefault(m, set()).update(order[position + 1 :])
    shortest: list[MessageId] | None = None
    for start in sorted(after):
        found = _shortest_way_back(start, after)
        if found is not None and (shortest is None or len(found) < len(shortest)):
            shortest = found
    return shortest


def _blocked(orders: list[list[MessageId]]) -> list[list[MessageId]]:
    """Return what is left of the orders that still hold messages when the merge is over.

    The merge takes away messages that are first wherever they occur. If none is first
    everywhere, those that are left lie on cycles or behind them.
    """
    holders: dict[MessageId, int] = {}
    left = 0
    for order in orders:
        left += len(order)
        for m in order:
            holders[m] = holders.get(m, 0) + 1
    places = [0] * len(orders)
    while left:
        heads: dict[MessageId, int] = {}
        for which, order in enumerate(orders):
            if places[which] < len(order):
                m = order[places[which]]
                heads[m] = heads.get(m, 0) + 1
        removed = 0
        for which, order in enumerate(orders):
            if places[which] < len(order):
                m = order[places[which]]
                if heads[m] == holders[m]:
                    places[which] += 1
                    removed += 1
        if not removed:
            break
        left -= removed
    if not left:
        return []
    return [order[place:] for order, place in zip(orders, places, strict=True)]


def _shortest_way_back(
    start: MessageId, after: dict[MessageId, set[MessageId]]
) -> list[MessageId] | None:
    paths = [[start]]
    seen: set[MessageId] = set()
    while paths:
        longer: list[list[MessageId]] = []
        for path in paths:
            for follower in sorted(after[path[-1]]):
                if follower == start:
                    return path
                if follower not in seen:
                    seen.add(follower)
                    longer.append([*path, follower])
        paths = longer
    return None
