"""Searching processes that go through the levels together.

A state belongs to the worker that its fingerprint falls to, and whoever finds it sends it there.
All finish a level before any begins the next, so the search stays breadth first. A single worker
searches in this process and sends nothing.
"""

from __future__ import annotations

import json
import multiprocessing
import signal
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from flexgroup.core.errors import UsageError
from flexgroup.core.message import MessageId
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.machine import ClientAddressedError, is_delivery, message_in
from flexgroup.worlds.explorer.packed_states import (
    TableExchange,
    TableUpdates,
    pack_states,
    pack_visited,
    take_states,
    unpack_visited,
)
from flexgroup.worlds.explorer.property_checks import VALIDITY
from flexgroup.worlds.explorer.result import Orders
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.search import OutgoingStates, Search, StateViolation
from flexgroup.worlds.explorer.search_setup import SearchOptions, new_search
from flexgroup.worlds.explorer.symmetry import AsymmetricError, renamed_id

NEVER = -1

STOP = "stop"

_EXPECTED = (AsymmetricError, ClientAddressedError, UsageError)


@dataclass(frozen=True)
class SearchTotals:
    """How far a worker is, or all workers together."""

    more: bool
    """Whether there are states of this level left to expand."""
    states: int
    transitions: int
    frontier: int
    memory: int
    strays: int
    learnt: bool
    """Whether the reduction has learnt something that it did not know when this search began."""
    findings: list[StateViolation]
    """Each broken property with a state, as early as any that is known to break it."""


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
    """A search of the states whose fingerprints fall to this worker."""

    def __init__(
        self, plan: StackPlan, scope: Scope, options: SearchOptions, workers: int, me: int
    ) -> None:
        self.search = new_search(plan, scope, options, workers, me)
        self._begin()

    def _begin(self) -> None:
        self._exchange = TableExchange(self.search)
        self._exchange.skip()
        self._grown = self.search.machine.growth

    def again(self) -> None:
        """Begin the search again, with what was learnt."""
        self.search = self.search.again()
        self._begin()

    def expand(self, at_most: int) -> None:
        more = self.search.expand(at_most)
        if not more and self.search.symmetry is not None:
            self.search.symmetry.verify()

    def give(self) -> tuple[TableUpdates, list[bytes]]:
        """Return what was computed since the last time, and the states found for each worker."""
        search = self.search
        packed = [
            pack_states(search, outbox.states, outbox.fingerprints, outbox.parents)
            for outbox in search.outboxes
        ]
        search.outboxes = [OutgoingStates() for _ in packed]
        return self._exchange.collect(), packed

    def take(self, updates: list[TableUpdates], states: list[bytes]) -> None:
        """Take over what the others have computed, and the states that they found."""
        for update in updates:
            self._exchange.apply(update)
        self._exchange.skip()
        for data in states:
            take_states(self.search, data)

    def totals(self) -> SearchTotals:
        search = self.search
        left = len(search.fingerprints) - int(search.position)
        return SearchTotals(
            more=left > 0,
            states=search.visited.count,
            transitions=search.transitions,
            frontier=left + len(search.next_fingerprints),
            memory=memory_of(search),
            strays=search.strays,
            learnt=search.machine.growth != self._grown,
            findings=search.findings,
        )

    def next_level(self) -> int:
        return self.search.next_level()

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
            "findings": search.findings,
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
        for length in head["lengths"]:
            search.next_level()
            take_states(search, data[start : start + length])
            start += length
        unpack_visited(search, data[start:])
        search.level = head["level"]
        search.position = head["position"]
        search.transitions, search.terminals, search.complete, search.loops = head["counts"]
        self._grown = NEVER if head["learnt"] else search.machine.growth
        search.findings = [StateViolation(*found) for found in head["findings"]]
        search.found = {found.property for found in search.findings}
        for orders in head["orders"]:
            numbers = [search.machine.history_of(tuple(history)) for history in orders]
            search.terminal_orders.add(tuple(numbers))


def memory_of(search: Search) -> int:
    """Count the bytes of visited states and frontier; the tables of steps add little to them."""
    a_state = 4 * (2 * search.actors + 1) + 8
    return search.visited.bytes_used() + a_state * (
        len(search.fingerprints) + len(search.next_fingerprints)
    )


def seen_orders(search: Search) -> frozenset[tuple[MessageId, MessageId]]:
    pairs: set[tuple[MessageId, MessageId]] = set()
    for history in search.machine.histories:
        order = [message_in(entry) for entry in history if is_delivery(entry)]
        for place, later in enumerate(order):
            pairs.update((earlier, later) for earlier in order[:place])
    return frozenset(pairs)


def orders_of(search: Search, numbers: Sequence[int]) -> Orders:
    """What each process has delivered in the history of this number."""
    histories = search.machine.histories
    return tuple(
        tuple(message_in(entry) for entry in histories[number] if is_delivery(entry))
        for number in numbers[: search.machine.size]
    )


def terminal_orders(search: Search) -> frozenset[Orders]:
    """What each process has delivered, for every way in which a run can end."""
    found: set[Orders] = set()
    for numbers in search.terminal_orders:
        orders = orders_of(search, numbers)
        found.add(orders)
        if search.symmetry is not None:
            for mirror in search.symmetry.mirrors:
                found.add(
                    tuple(tuple(renamed_id(m, mirror.exchange) for m in order) for order in orders)
                )
    return frozenset(found)


class _LocalWorker:
    """A worker in this process."""

    def __init__(self, *arguments: Any) -> None:
        self._worker = Worker(*arguments)

    def ask(self, what: str, *arguments: object) -> None:
        self._answer = getattr(self._worker, what)(*arguments)

    def answer(self) -> Any:
        return self._answer

    def stop(self) -> None:
        self._worker.search.machine.forget()


class _RemoteWorker:
    """A worker in a process of its own."""

    def __init__(self, *arguments: Any) -> None:
        methods = multiprocessing.get_all_start_methods()
        context: Any = multiprocessing.get_context("fork" if "fork" in methods else None)
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, *arguments), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, what: str, *arguments: object) -> None:
        self._pipe.send((what, arguments))

    def answer(self) -> Any:
        answer = self._pipe.recv()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def stop(self) -> None:
        # Closing the pipe would not do: workers hold copies of those made before they began.
        with suppress(OSError):
            self._pipe.send(STOP)
        self._pipe.close()
        self._process.join(5)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join()


def _serve(pipe: Connection, *arguments: Any) -> None:
    """Do what is asked of a worker, in a process of its own, until told to stop or it fails."""
    # The process that started the workers decides what an interrupt means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        worker = Worker(*arguments)
        pipe.send(None)
        while (asked := pipe.recv()) != STOP:
            what, told = asked
            pipe.send(getattr(worker, what)(*told))
    except (EOFError, OSError):
        return  # the process that asks is gone
    except _EXPECTED as error:
        pipe.send(error)
    except Exception as error:
        pipe.send(RuntimeError(f"a worker failed: {type(error).__name__}: {error}"))


class Workers:
    """Workers, in this process or in processes of their own, that are told the same things."""

    def __init__(self, plan: StackPlan, scope: Scope, options: SearchOptions, size: int) -> None:
        self.size = size
        self.level = 0
        self._workers: list[_LocalWorker | _RemoteWorker] = []
        if size == 1:
            self._workers.append(_LocalWorker(plan, scope, options, 1, 0))
            return
        for me in range(size):
            self._workers.append(_RemoteWorker(plan, scope, options, size, me))
        self._answers()

    def expand(self, at_most: int) -> SearchTotals:
        """Let every worker expand so many states of this level, and exchange what they found."""
        self._ask("expand", at_most)
        if self.size > 1:
            given: list[tuple[TableUpdates, list[bytes]]] = self._ask("give")
            for me, worker in enumerate(self._workers):
                others = given[:me] + given[me + 1 :]
                states = [packed[me] for _, packed in others if packed[me]]
                worker.ask("take", [updates for updates, _ in others], states)
            self._answers()
        return _totals(self._ask("totals"))

    def next_level(self) -> int:
        """Go on to the next level, and say how many states it has."""
        self.level += 1
        return sum(self._ask("next_level"))

    def again(self) -> None:
        self.level = 0
        self._ask("again")

    def parent(self, fingerprint: int) -> int:
        """Return the fingerprint of the state from which this one was first reached."""
        worker = self._workers[fingerprint % self.size]
        worker.ask("parent", fingerprint)
        return int(worker.answer())

    def summaries(self) -> list[WorkerSummary]:
        return self._ask("summary")

    def save(self) -> list[bytes]:
        return self._ask("save")

    def restore(self, saved: list[bytes], level: int) -> None:
        self.level = level
        for worker, data in zip(self._workers, saved, strict=True):
            worker.ask("restore", data)
        self._answers()

    def stop(self) -> None:
        for worker in self._workers:
            worker.stop()

    def _ask(self, what: str, *arguments: object) -> list[Any]:
        for worker in self._workers:
            worker.ask(what, *arguments)
        return self._answers()

    def _answers(self) -> list[Any]:
        """Wait for the answers of all workers, and only then raise the error of one."""
        answers: list[Any] = []
        trouble: BaseException | None = None
        for worker in self._workers:
            try:
                answers.append(worker.answer())
            except _EXPECTED as error:
                trouble = error
        if trouble is not None:
            raise trouble
        return answers


def _totals(all_totals: list[SearchTotals]) -> SearchTotals:
    first: dict[str, StateViolation] = {}
    for totals in all_totals:
        for found in totals.findings:
            known = first.get(found.property)
            if known is None or found.level < known.level:
                first[found.property] = found
    return SearchTotals(
        more=any(totals.more for totals in all_totals),
        states=sum(totals.states for totals in all_totals),
        transitions=sum(totals.transitions for totals in all_totals),
        frontier=sum(totals.frontier for totals in all_totals),
        memory=sum(totals.memory for totals in all_totals),
        strays=sum(totals.strays for totals in all_totals),
        learnt=any(totals.learnt for totals in all_totals),
        # Among properties broken at the same depth, a missing delivery says most.
        findings=sorted(
            first.values(),
            key=lambda found: (found.level, found.property != VALIDITY, found.property),
        ),
    )
