"""A search in pieces that mean the same in every process, and a search put together from them.

Pieces are made and taken in one after the other, so a large search is never in memory twice.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any

from flexgroup.worlds.explorer.exchange import share
from flexgroup.worlds.explorer.packed_states import (
    TableExchange,
    TableUpdates,
    pack_queue,
    pack_visited,
    take_states,
    unpack_visited,
)
from flexgroup.worlds.explorer.search import Search, StateViolation

# What is in a piece.
HEAD = b"h"
FRONTIER = b"f"
END_OF_LEVEL = b"e"
UPCOMING = b"u"
VISITED = b"v"


def pieces_of(search: Search, learnt: bool) -> Iterator[bytes]:
    """Take a search to pieces; its queues are empty afterwards."""
    yield _piece(HEAD, json.dumps(_head(search, learnt)).encode())
    for data in pack_queue(search, search.frontier):
        yield _piece(FRONTIER, data)
    yield _piece(END_OF_LEVEL, b"")
    for data in pack_queue(search, search.upcoming):
        yield _piece(UPCOMING, data)
    for data in pack_visited(search):
        yield _piece(VISITED, data)


def put_back(search: Search, piece: bytes) -> dict[str, Any] | None:
    """Take in a piece of a search; the first one tells more of it."""
    kind, data = piece[:1], zlib.decompress(piece[1:])
    if kind == HEAD:
        head: dict[str, Any] = json.loads(data)
        _begin(search, head)
        return head
    if kind == END_OF_LEVEL:
        search.next_level()
        search.level -= 1
    elif kind == VISITED:
        unpack_visited(search, data)
    else:
        take_states(search, data)
    return None


def _piece(kind: bytes, data: bytes) -> bytes:
    return kind + zlib.compress(data, 1)


def _head(search: Search, learnt: bool) -> dict[str, object]:
    tables = TableExchange(search).collect()
    orders = [
        [list(search.machine.histories[number]) for number in numbers]
        for numbers in sorted(search.terminal_orders)
    ]
    sharing = search.sharing
    owners = None if sharing is None else sharing.ownership
    return {
        "steps": tables.steps,
        "inboxes": tables.in_flight,
        "budgets": tables.budgets,
        "level": search.level,
        "counts": [
            search.transitions,
            search.terminals,
            search.complete,
            search.loops,
            search.strays,
            search.inherited,
        ],
        "learnt": learnt,
        "findings": search.findings,
        "orders": orders,
        "sharing": (
            None
            if sharing is None or owners is None
            else [owners.actors, owners.workers, sharing.me]
        ),
    }


def _begin(search: Search, head: dict[str, Any]) -> None:
    """Fill the tables of a new search, which has nothing to do as yet."""
    tables = TableUpdates(
        [(local, event) for local, event in head["steps"]],
        [tuple(contents) for contents in head["inboxes"]],
        [tuple(left) for left in head["budgets"]],
    )
    TableExchange(search).apply(tables)
    search.next_level()
    search.level = head["level"]
    search.transitions, search.terminals, search.complete, search.loops = head["counts"][:4]
    search.strays, search.inherited = head["counts"][4:]
    search.findings = [StateViolation(*found) for found in head["findings"]]
    search.found = {found.property for found in search.findings}
    for orders in head["orders"]:
        numbers = [search.machine.history_of(tuple(history)) for history in orders]
        search.terminal_orders.add(tuple(numbers))
    if head["sharing"] is not None:
        share(search, *head["sharing"])
