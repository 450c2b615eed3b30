"""Deliveries that are missing or wrong on a bench with a handful of messages.

The properties proper (`flexgroup.properties`) work on traces of millions of events; these work on
a few lists, many thousands of times a second. So does acyclic order, in
`flexgroup.core.precedence`.
"""

from __future__ import annotations

from collections.abc import Sequence

from flexgroup.core.message import Message, MessageId


def undelivered(
    delivered: Sequence[Sequence[Message]], messages: Sequence[Message]
) -> list[tuple[MessageId, int]]:
    """List the pairs of message and destination for which there is no delivery."""
    had = {(m.id, process) for process, order in enumerate(delivered) for m in order}
    return [
        (m.id, destination)
        for m in messages
        for destination in m.destinations
        if (m.id, destination) not in had
    ]


def wrongly_delivered(delivered: Sequence[Sequence[Message]]) -> list[tuple[MessageId, int]]:
    """List the deliveries that integrity forbids: a second time, or to no destination."""
    wrong = []
    for process, order in enumerate(delivered):
        seen: set[MessageId] = set()
        for m in order:
            if m.id in seen or process not in m.destinations:
                wrong.append((m.id, process))
            seen.add(m.id)
    return wrong
