"""One worker of a search: it owns the states whose fingerprints fall to it."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass

from flexgroup.core.message import MessageId
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.machine import is_cast, message_in
from flexgroup.worlds.explorer.packed_states import (
    TableExchange,
    TableUpdates,
    pack_states,
    pack_visited,
    take_states,
    unpack_states,
    unpack_visited,
)
from flexgroup.worlds.explorer.result import Orders
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.search import Search
from flexgroup.worlds.explorer.search_setup import SearchOptions, new_search
from flexgroup.worlds.explorer.symmetry import renamed_id
from flexgroup.worlds.explorer.transitions import OutgoingStates, StateViolation

NEVER = -1

SentUpdates = tuple[list[tuple[int, int]], list[tuple[int, ...]], list[tuple[int, ...]]]
"""TableUpdates in a form that can be sent from process to process."""


@dataclass(frozen=True)
class LevelReport:
    """What came of expanding some states."""

    more: bool
    """Whether there are states of this level left to expand."""
    states: int
    transitions: int
    frontier: int
    memory: int
    strays: int
    learnt: bool
    """Whether the reduction has learnt something that it did not know when this search began."""
    findings: list[tuple[str, int, int]]
    """Properties that are broken, in which states, at which level."""
    outboxes: list[bytes]
    """The packed states that were found and belong to each of the workers."""
    updates: SentUpdates


@dataclass(frozen=True)
class WorkerSummary:
    """What a worker reports when the search has ended."""

    terminals: int
    complete: int
    terminal_orders: frozenset[Orders]
    seen_orders: frozenset[tuple[MessageId, MessageId]]
    timers_seen: bool
    exchanges: int
    local_states: int


class Worker:
    """A search, and the exchange of states and table entries with other workers."""

    def __init__(
        self, plan: StackPlan, scope: Scope, options: SearchOptions, workers: int, me: int
    ) -> None:
        self.search = new_search(plan, scope, options, workers, me)
        self._exchange = TableExchange(self.search)
        self._exchange.skip()
        self._grown = self.search.machine.growth

    def again(self) -> None:
        """Begin the search again, with what was learnt."""
        self.search = self.search.again()
        self._exchange = TableExchange(self.search)
        self._exchange.skip()
        self._grown = self.search.machine.growth

    def expand(self, at_most: int) -> LevelReport:
        more = self.search.expand(at_most)
        if not more and self.search.symmetry is not None:
            self.search.symmetry.verify()
        report = self._report(more)
        self.search.outboxes = [OutgoingStates() for _ in report.outboxes]
        return report

    def take(self, updates: list[SentUpdates], states: list[bytes]) -> None:
        """Take over what the others have computed, and the states that they found."""
        for sent in updates:
            self._exchange.apply(TableUpdates(*sent))
        self._exchange.skip()
        for data in states:
            take_states(self.search, data)

    def next_level(self) -> int:
        return self.search.next_level()

    def report(self) -> LevelReport:
        """Report again, after states of others were taken in."""
        return self._report(
            self.search.position < len(self.search.fingerprints), with_updates=False
        )

    def parent(self, fingerprint: int) -> int:
        return int(self.search.visited.parent(fingerprint))

    def summary(self) -> WorkerSummary:
        search = self.search
        return WorkerSummary(
            terminals=search.terminals,
            complete=search.complete,
            terminal_orders=terminal_orders(search),
            seen_orders=seen_orders(search),
            timers_seen=search.machine.timers_seen,
            exchanges=1 + (len(search.symmetry.mirrors) if search.symmetry else 0),
            local_states=len(search.machine.locals),
        )

    def _report(self, more: bool, with_updates: bool = True) -> LevelReport:
        search = self.search
        outboxes = [
            pack_states(search, outbox.states, outbox.fingerprints, outbox.parents)
            for outbox in search.outboxes
        ]
        nothing = TableUpdates([], [], [])
        exchanging = with_updates and search.workers > 1
        updates = self._exchange.collect() if exchanging else nothing
        return LevelReport(
            more=more,
            states=search.visited.count,
            transitions=search.transitions,
            frontier=frontier_of(search),
            memory=memory_of(search),
            strays=search.strays,
            learnt=search.machine.growth != self._grown,
            findings=[(f.property, f.fingerprint, f.level) for f in search.findings],
            outboxes=outboxes,
            updates=(updates.steps, updates.in_flight, updates.budgets),
        )

    # Interrupting and resuming.

    def save(self) -> bytes:
        """Return all that is needed to go on from here."""
        search = self.search
        tables = TableExchange(search).collect()
        empty = OutgoingStates().parents
        upcoming = pack_states(search, search.next_states, search.next_fingerprints, empty)
        level = pack_states(search, search.states, search.fingerprints, empty)
        orders = [
            [list(search.machine.histories[number]) for number in numbers]
            for numbers in sorted(search.terminal_orders)
        ]
        head = {
            "steps": tables.steps,
            "inboxes": tables.in_flight,
            "budgets": tables.budgets,
            "level": search.level,
            "position": int(search.position),
            "counts": [search.transitions, search.terminals, search.complete, search.loops],
            "learnt": search.machine.growth != self._grown,
            "findings": [(f.property, f.fingerprint, f.level) for f in search.findings],
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
        tables = TableUpdates(
            [(local, event) for local, event in head["steps"]],
            [tuple(contents) for contents in head["inboxes"]],
            [tuple(left) for left in head["budgets"]],
        )
        self._exchange.apply(tables)
        self._exchange.skip()
        here, upcoming = head["lengths"]
        rows = unpack_states(search, data[start : start + here])
        later = unpack_states(search, data[start + here : start + here + upcoming])
        search.restore(rows, head["position"], later)
        unpack_visited(search, data[start + here + upcoming :])
        search.level = head["level"]
        search.transitions, search.terminals, search.complete, search.loops = head["counts"]
        self._grown = NEVER if head["learnt"] else search.machine.growth
        search.findings = [StateViolation(*found) for found in head["findings"]]
        search.found = {found.property for found in search.findings}
        for orders in head["orders"]:
            numbers = [search.machine.history_of(tuple(history)) for history in orders]
            search.terminal_orders.add(tuple(numbers))


def frontier_of(search: Search) -> int:
    return len(search.fingerprints) - int(search.position) + len(search.next_fingerprints)


def memory_of(search: Search) -> int:
    """Count the bytes of visited states and frontier; the tables of steps add little to them."""
    a_state = 4 * (2 * search.actors + 1) + 8
    return search.visited.bytes_used() + a_state * (
        len(search.fingerprints) + len(search.next_fingerprints)
    )


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
