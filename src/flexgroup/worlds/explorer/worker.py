"""One searching process of a crew: it owns the states whose fingerprints fall to it."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass

from flexgroup.core.message import MessageId
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.machine import is_cast, message_in
from flexgroup.worlds.explorer.moves import Finding, Parcel
from flexgroup.worlds.explorer.outcome import Orders
from flexgroup.worlds.explorer.parcels import (
    News,
    Newsroom,
    pack_visited,
    packed,
    take_in,
    unpack_visited,
    unpacked,
)
from flexgroup.worlds.explorer.prepared import Manner, prepare
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.search import Search
from flexgroup.worlds.explorer.symmetry import renamed_id

NEVER = -1

Told = tuple[list[tuple[int, int]], list[tuple[int, ...]], list[tuple[int, ...]]]
"""News in a form that can be sent from process to process."""


@dataclass(frozen=True)
class Report:
    """What came of expanding some states."""

    more: bool
    """There are states of this level left to expand."""
    states: int
    transitions: int
    frontier: int
    memory: int
    strays: int
    learnt: bool
    """Something that the reduction did not know when this search began."""
    findings: list[tuple[str, int, int]]
    """Properties that are broken, in which states, at which level."""
    parcels: list[bytes]
    news: Told


@dataclass(frozen=True)
class Summary:
    """What a worker says at the end."""

    terminals: int
    complete: int
    terminal_orders: frozenset[Orders]
    seen_orders: frozenset[tuple[MessageId, MessageId]]
    timers_seen: bool
    exchanges: int
    local_states: int


class Worker:
    """A search, and the passage of states and news to and from the others."""

    def __init__(
        self, plan: StackPlan, scope: Scope, manner: Manner, workers: int, me: int
    ) -> None:
        self.search = prepare(plan, scope, manner, workers, me)
        self._room = Newsroom(self.search)
        self._room.heard()
        self._grown = self.search.machine.growth

    def again(self) -> None:
        """Begin anew, knowing what was learnt."""
        self.search = self.search.again()
        self._room = Newsroom(self.search)
        self._room.heard()
        self._grown = self.search.machine.growth

    def expand(self, at_most: int) -> Report:
        more = self.search.expand(at_most)
        if not more and self.search.symmetry is not None:
            self.search.symmetry.verify()
        report = self._report(more)
        self.search.parcels = [Parcel() for _ in report.parcels]
        return report

    def take(self, news: list[Told], parcels: list[bytes]) -> None:
        """Hear what the others have computed, and take in the states that they found."""
        for told in news:
            self._room.hear(News(*told))
        self._room.heard()
        for data in parcels:
            take_in(self.search, data)

    def next_level(self) -> int:
        return self.search.next_level()

    def report(self) -> Report:
        """How it stands after what was taken in."""
        return self._report(self.search.position < len(self.search.marks), telling=False)

    def parent(self, mark: int) -> int:
        return int(self.search.visited.parent(mark))

    def summary(self) -> Summary:
        search = self.search
        return Summary(
            search.terminals,
            search.complete,
            terminal_orders(search),
            seen_orders(search),
            search.machine.timers_seen,
            1 + (len(search.symmetry.mirrors) if search.symmetry else 0),
            len(search.machine.locals),
        )

    def _report(self, more: bool, telling: bool = True) -> Report:
        search = self.search
        parcels = []
        for parcel in search.parcels:
            parcels.append(packed(search, parcel.states, parcel.marks, parcel.parents))
        telling = telling and search.workers > 1
        news = self._room.tell() if telling else News([], [], [])
        return Report(
            more,
            search.visited.count,
            search.transitions,
            frontier_of(search),
            memory_of(search),
            search.strays,
            search.machine.growth != self._grown,
            [(found.property, found.mark, found.level) for found in search.findings],
            parcels,
            (news.steps, news.inboxes, news.budgets),
        )

    # Interrupting and resuming.

    def save(self) -> bytes:
        """All that is needed to go on from here."""
        search = self.search
        room = Newsroom(search)
        news = room.tell()
        empty = Parcel().parents
        upcoming = packed(search, search.next_states, search.next_marks, empty)
        level = packed(search, search.states, search.marks, empty)
        orders = [
            [list(search.machine.histories[number]) for number in numbers]
            for numbers in sorted(search.terminal_orders)
        ]
        head = {
            "steps": news.steps,
            "inboxes": news.inboxes,
            "budgets": news.budgets,
            "level": search.level,
            "position": int(search.position),
            "counts": [search.transitions, search.terminals, search.complete, search.loops],
            "learnt": search.machine.growth != self._grown,
            "findings": [(f.property, f.mark, f.level) for f in search.findings],
            "orders": orders,
            "lengths": [len(level), len(upcoming)],
        }
        text = json.dumps(head).encode()
        body = level + upcoming + pack_visited(search)
        return zlib.compress(len(text).to_bytes(8, "big") + text + body, 1)

    def restore(self, saved: bytes) -> None:
        """Go on where `save` was called."""
        data = zlib.decompress(saved)
        start = 8 + int.from_bytes(data[:8], "big")
        head = json.loads(data[8:start])
        search = self.search
        told = (
            [(local, event) for local, event in head["steps"]],
            [tuple(contents) for contents in head["inboxes"]],
            [tuple(left) for left in head["budgets"]],
        )
        self._room.hear(News(*told))
        self._room.heard()
        here, upcoming = head["lengths"]
        rows = unpacked(search, data[start : start + here])
        later = unpacked(search, data[start + here : start + here + upcoming])
        search.restore(rows, head["position"], later)
        unpack_visited(search, data[start + here + upcoming :])
        search.level = head["level"]
        search.transitions, search.terminals, search.complete, search.loops = head["counts"]
        self._grown = NEVER if head["learnt"] else search.machine.growth
        search.findings = [Finding(*found) for found in head["findings"]]
        search.found = {found.property for found in search.findings}
        for orders in head["orders"]:
            numbers = [search.machine.history_of(tuple(history)) for history in orders]
            search.terminal_orders.add(tuple(numbers))


def frontier_of(search: Search) -> int:
    return len(search.marks) - int(search.position) + len(search.next_marks)


def memory_of(search: Search) -> int:
    """Visited states and the frontier; the tables of steps add little, and are not counted."""
    a_state = 4 * (2 * search.actors + 1) + 8
    return search.visited.bytes_used() + a_state * (len(search.marks) + len(search.next_marks))


def seen_orders(search: Search) -> frozenset[tuple[MessageId, MessageId]]:
    pairs: set[tuple[MessageId, MessageId]] = set()
    for history in search.machine.histories:
        order = [message_in(entry) for entry in history if not is_cast(entry)]
        for place, later in enumerate(order):
            pairs.update((earlier, later) for earlier in order[:place])
    return frozenset(pairs)


def terminal_orders(search: Search) -> frozenset[Orders]:
    """What each process has delivered, for every way in which a run can end."""
    found: set[Orders] = set()
    histories = search.machine.histories
    for numbers in search.terminal_orders:
        orders = tuple(
            tuple(message_in(entry) for entry in histories[number] if not is_cast(entry))
            for number in numbers[: search.machine.size]
        )
        found.add(orders)
        if search.symmetry is not None:
            for mirror in search.symmetry.mirrors:
                found.add(
                    tuple(tuple(renamed_id(m, mirror.exchange) for m in order) for order in orders)
                )
    return frozenset(found)
