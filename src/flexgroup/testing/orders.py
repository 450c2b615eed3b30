"""Small checks on delivery orders, for benches with a handful of messages.

The properties proper (`flexgroup.properties`) work on traces of millions of events;
these work on a few lists, many thousands of times a second.
"""

from __future__ import annotations

from collections.abc import Sequence

from flexgroup.core.message import Message, MessageId


def cycle(orders: Sequence[Sequence[MessageId]]) -> list[MessageId]:
    """A shortest cycle in the union of these orders; empty if there is none.

    Removes, again and again, a message that is first wherever it occurs; what remains when
    no such message is left contains a cycle.
    """
    queues = [list(reversed(order)) for order in orders if order]
    holders: dict[MessageId, int] = {}
    for queue in queues:
        for identity in queue:
            holders[identity] = holders.get(identity, 0) + 1
    removed = True
    while removed:
        removed = False
        heads: dict[MessageId, int] = {}
        for queue in queues:
            if queue:
                heads[queue[-1]] = heads.get(queue[-1], 0) + 1
        for identity, count in heads.items():
            if count == holders[identity]:
                for queue in queues:
                    if queue and queue[-1] == identity:
                        queue.pop()
                removed = True
    if not any(queues):
        return []
    return _shortest_cycle([list(reversed(queue)) for queue in queues])


def _shortest_cycle(orders: list[list[MessageId]]) -> list[MessageId]:
    after: dict[MessageId, set[MessageId]] = {}
    for order in orders:
        for position, identity in enumerate(order):
            after.setdefault(identity, set()).update(order[position + 1 :])
    cycles = [_shortest_path_back(start, after) for start in sorted(after)]
    return min(filter(None, cycles), key=len)


def _shortest_path_back(
    start: MessageId, after: dict[MessageId, set[MessageId]]
) -> list[MessageId]:
    paths = [[start]]
    seen: set[MessageId] = set()
    while paths:
        longer = []
        for path in paths:
            for follower in sorted(after[path[-1]]):
                if follower == start:
                    return path
                if follower not in seen:
                    seen.add(follower)
                    longer.append([*path, follower])
        paths = longer
    return []


def undelivered(
    delivered: Sequence[Sequence[Message]], messages: Sequence[Message]
) -> list[tuple[MessageId, int]]:
    """The (message, destination) pairs for which there is no delivery."""
    had = {(m.id, process) for process, order in enumerate(delivered) for m in order}
    return [
        (m.id, destination)
        for m in messages
        for destination in m.destinations
        if (m.id, destination) not in had
    ]


def wrongly_delivered(delivered: Sequence[Sequence[Message]]) -> list[tuple[MessageId, int]]:
    """Deliveries that integrity forbids: a second time, or to no destination."""
    wrong = []
    for process, order in enumerate(delivered):
        seen: set[MessageId] = set()
        for m in order:
            if m.id in seen or process not in m.destinations:
                wrong.append((m.id, process))
            seen.add(m.id)
    return wrong
