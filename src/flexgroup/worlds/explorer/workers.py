"""Searching processes that go through the levels together.

A search begins in one process. When a level is large, others join: each becomes a copy of that
process, and they divide the level and all that it leads to. A state belongs to one of them, and
whoever finds it posts it to its owner. All finish a level, and exchange what they found, before
any begins the next, so the search stays breadth first.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from flexgroup.core.errors import UsageError
from flexgroup.core.message import MessageId
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.exchange import NumberedUpdates, StateExchange, join, most_even
from flexgroup.worlds.explorer.machine import ClientAddressedError, is_delivery, message_in
from flexgroup.worlds.explorer.property_checks import VALIDITY
from flexgroup.worlds.explorer.result import Orders
from flexgroup.worlds.explorer.saved_search import pieces_of, put_back
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.search import Search, StateViolation
from flexgroup.worlds.explorer.search_setup import SearchOptions, new_search
from flexgroup.worlds.explorer.symmetry import AsymmetricError, renamed_id

JOIN_AT = 20_000
"""How many states a level has when other workers join: dividing less takes longer than it saves."""

AN_EIGHTH = 8
"""The part of the memory that states which wait for their owners may take."""

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
    in_files: int
    """How many visited states are in files."""
    trouble: str
    """Why states could not be written to files, if so."""
    crowded: bool
    """Whether more states wait for their owners than should be in memory."""
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
    posted: int
    """How many states this worker has found and posted to their owners."""


class Worker:
    """A search of all states, or of those that this worker owns."""

    def __init__(
        self, plan: StackPlan, scope: Scope, options: SearchOptions, memory: int = 0
    ) -> None:
        self.search = new_search(plan, scope, options, memory)
        self._memory = memory
        self._exchange: StateExchange | None = None
        self._grown = self.search.machine.growth
        self._pieces: Iterator[bytes] | None = None

    def again(self) -> None:
        """Begin the search again, with what was learnt."""
        self.search.close()
        self.search = self.search.again()
        self.search.limit(self._memory)
        self._exchange = None
        self._grown = self.search.machine.growth

    def expand(self, at_most: int) -> SearchTotals:
        if self.search.sharing is not None:
            # Whoever is done with its share waits for the others, so there should be few of them.
            at_most = max(at_most, len(self.search.frontier) // 4)
        more = self.search.expand(at_most)
        if not more and self.search.symmetry is not None:
            self.search.symmetry.verify()
        return self.totals()

    def owners(self, workers: int) -> list[int]:
        """Return the processes whose states should tell who owns a state."""
        return most_even(self.search, workers)

    def join(self, actors: list[int], workers: int, me: int) -> None:
        """Go on with a part of this level, as one of several that have the same tables."""
        join(self.search, actors, workers, me)
        self._exchange = StateExchange(self.search, alike=True)

    def give(self) -> tuple[NumberedUpdates, list[bytes]]:
        """Return what was computed since the last time, and the states found for each worker."""
        assert self._exchange is not None
        return self._exchange.give()

    def take(self, updates: list[NumberedUpdates], states: list[bytes]) -> SearchTotals:
        """Take over what all have computed, and the states that they found for this worker."""
        assert self._exchange is not None
        self._exchange.take(updates, states)
        return self.totals()

    def totals(self) -> SearchTotals:
        search = self.search
        sharing = search.sharing
        return SearchTotals(
            more=len(search.frontier) > 0,
            states=search.visited.count - search.inherited,
            transitions=search.transitions,
            frontier=len(search.frontier) + len(search.upcoming),
            memory=memory_of(search),
            strays=search.strays,
            learnt=search.machine.growth != self._grown,
            findings=search.findings,
            in_files=search.visited.in_file(),
            trouble=search.trouble(),
            crowded=bool(search.memory)
            and sharing is not None
            and sharing.waiting() > search.memory // AN_EIGHTH,
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
            posted=search.sharing.posted if search.sharing else 0,
        )

    def stop(self) -> None:
        self.search.close()
        self.search.machine.forget()

    # Interrupting and resuming.

    def piece(self) -> bytes:
        """Return the next piece of all that is needed to go on from here; no bytes at the end."""
        if self._pieces is None:
            learnt = self.search.machine.growth != self._grown
            self._pieces = pieces_of(self.search, learnt)
        return next(self._pieces, b"")

    def put_back(self, piece: bytes) -> None:
        """Take in a piece of a search, to go on where `piece` was called first."""
        head = put_back(self.search, piece)
        if head is not None:
            self._grown = NEVER if head["learnt"] else self.search.machine.growth
            if self.search.sharing is not None:
                self._exchange = StateExchange(self.search, alike=False)


def memory_of(search: Search) -> int:
    """Count the bytes of visited states and frontier; the tables of steps add little to them."""
    queued = search.frontier.bytes_used() + search.upcoming.bytes_used()
    posted = search.sharing.waiting() if search.sharing is not None else 0
    return search.visited.bytes_used() + queued + posted


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

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self._answer: Any = None

    def ask(self, what: str, *arguments: object) -> None:
        try:
            self._answer = getattr(self.worker, what)(*arguments)
        except _EXPECTED as error:
            self._answer = error

    def answer(self) -> Any:
        answer, self._answer = self._answer, None
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def stop(self) -> None:
        self.worker.stop()


class _RemoteWorker:
    """A worker in a process of its own."""

    def __init__(self, begin: Callable[[], Worker]) -> None:
        context: Any = multiprocessing.get_context("fork" if _can_fork() else None)
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, begin), daemon=True)
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


def _can_fork() -> bool:
    return "fork" in multiprocessing.get_all_start_methods()


def _serve(pipe: Connection, begin: Callable[[], Worker]) -> None:
    """Do what is asked of a worker, in a process of its own, until told to stop or it fails."""
    # The process that started the workers decides what an interrupt means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        worker = begin()
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


def _joined(worker: Worker, actors: list[int], workers: int, me: int) -> Worker:
    worker.join(actors, workers, me)
    return worker


class Workers:
    """A worker in this process, and others that join it when there is enough to do."""

    def __init__(
        self,
        plan: StackPlan,
        scope: Scope,
        options: SearchOptions,
        size: int = 1,
        *,
        memory: int = 0,
        join_at: int = JOIN_AT,
    ) -> None:
        self.size = size
        """How many they are when all have joined."""
        self.level = 0
        self.bytes_exchanged = 0
        self._begin = partial(Worker, plan, scope, options, memory)
        self._reduce = options.reduce
        self._join_at = join_at
        self._workers: list[_LocalWorker | _RemoteWorker] = [_LocalWorker(self._begin())]

    @property
    def several(self) -> bool:
        """Whether others have joined."""
        return len(self._workers) > 1

    def expand(self, at_most: int) -> SearchTotals:
        """Let every worker expand so many states of this level, or more if it has many left.

        When the level is done, or too much is waiting, they exchange what they found.
        """
        totals = _totals(self._ask("expand", at_most))
        if totals.crowded or not totals.more:
            return self.exchange(totals)
        return totals

    def exchange(self, totals: SearchTotals) -> SearchTotals:
        """Give every worker the states that others have found for it."""
        if not self.several:
            return totals
        given: list[tuple[NumberedUpdates, list[bytes]]] = self._ask("give")
        updates = [added for added, _ in given]
        self.bytes_exchanged += sum(len(data) for _, posted in given for data in posted)
        # The one in this process last: it is at work as soon as it is asked.
        for me, worker in reversed(list(enumerate(self._workers))):
            worker.ask("take", updates, [posted[me] for _, posted in given])
        return _totals(self._answers())

    def next_level(self) -> int:
        """Go on to the next level, and say how many states it has."""
        self.level += 1
        states = sum(map(int, self._ask("next_level")))
        if self.size > 1 and not self.several and states >= self._join_at:
            self._join()
        return states

    def _join(self) -> None:
        """Divide the level, and what it leads to, among all workers."""
        local = self._workers[0]
        assert isinstance(local, _LocalWorker)
        worker = local.worker
        if self._reduce and worker.search.strays:
            return  # where states come back to earlier ones, the reduced search is one process
        actors = worker.owners(self.size)
        others = range(1, self.size)
        if not _can_fork():
            pieces = list(iter(worker.piece, b""))
            worker.stop()
            self._workers = [_LocalWorker(self._begin())]
            self._workers += [_RemoteWorker(self._begin) for _ in others]
            self._answers()
            for piece in pieces:
                self._ask("put_back", piece)
            for me, other in enumerate(self._workers):
                other.ask("join", actors, self.size, me)
            self._answers()
            return
        for me in others:
            self._workers.append(_RemoteWorker(partial(_joined, worker, actors, self.size, me)))
        local.ask("join", actors, self.size, 0)
        self._answers()

    def again(self) -> None:
        """Begin again, with one worker, who knows what all have learnt."""
        self.level = 0
        for worker in self._workers[1:]:
            worker.stop()
        del self._workers[1:]
        self._ask("again")

    def parent(self, fingerprint: int) -> int:
        """Return the fingerprint of the state from which this one was first reached."""
        return max(map(int, self._ask("parent", fingerprint)))

    def summaries(self) -> list[WorkerSummary]:
        return self._ask("summary")

    def save(self) -> list[Iterator[bytes]]:
        """Take the search of every worker to pieces, which are made when they are asked for."""
        return [self._pieces(worker) for worker in self._workers]

    def _pieces(self, worker: _LocalWorker | _RemoteWorker) -> Iterator[bytes]:
        while True:
            worker.ask("piece")
            piece: bytes = worker.answer()
            if not piece:
                return
            yield piece

    def restore(self, saved: Sequence[Iterable[bytes]], level: int) -> None:
        """Go on where `save` was called, with as many workers as there were."""
        self.level = level
        if len(saved) > 1:
            self.size = len(saved)
            self._workers += [_RemoteWorker(self._begin) for _ in saved[1:]]
            self._answers()
        for worker, pieces in zip(self._workers, saved, strict=True):
            for piece in pieces:
                worker.ask("put_back", piece)
                worker.answer()

    def stop(self) -> None:
        for worker in self._workers:
            worker.stop()

    def _ask(self, what: str, *arguments: object) -> list[Any]:
        # The one in this process last: it is at work as soon as it is asked.
        for worker in reversed(self._workers):
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
        in_files=sum(totals.in_files for totals in all_totals),
        trouble=next((totals.trouble for totals in all_totals if totals.trouble), ""),
        crowded=any(totals.crowded for totals in all_totals),
        # Among properties broken at the same depth, a missing delivery says most.
        findings=sorted(
            first.values(),
            key=lambda found: (found.level, found.property != VALIDITY, found.property),
        ),
    )
