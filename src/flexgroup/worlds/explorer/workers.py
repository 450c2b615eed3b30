"""Several searching processes that go through the levels together.

A state belongs to the worker that its fingerprint falls to, and whoever finds it sends it there.
All finish a level before any begins the next, so the search stays breadth first. A single worker
searches in this process and sends nothing.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.machine import ClientAddressedError
from flexgroup.worlds.explorer.property_checks import VALIDITY
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.search_setup import SearchOptions
from flexgroup.worlds.explorer.symmetry import AsymmetricError
from flexgroup.worlds.explorer.worker import LevelReport, Worker, WorkerSummary

STOP = "stop"

_EXPECTED = (AsymmetricError, ClientAddressedError)


@dataclass(frozen=True)
class SearchTotals:
    """How far all workers together are."""

    more: bool
    states: int
    transitions: int
    frontier: int
    memory: int
    strays: int
    learnt: bool
    findings: tuple[tuple[str, int, int], ...]
    """Each broken property with the fingerprint and the level of a state, as early as any."""


def _totals(reports: list[LevelReport]) -> SearchTotals:
    first: dict[str, tuple[str, int, int]] = {}
    for report in reports:
        for found in report.findings:
            known = first.get(found[0])
            if known is None or found[2] < known[2]:
                first[found[0]] = found
    return SearchTotals(
        more=any(report.more for report in reports),
        states=sum(report.states for report in reports),
        transitions=sum(report.transitions for report in reports),
        frontier=sum(report.frontier for report in reports),
        memory=sum(report.memory for report in reports),
        strays=sum(report.strays for report in reports),
        learnt=any(report.learnt for report in reports),
        # Among properties broken at the same depth, a missing delivery says most.
        findings=tuple(
            sorted(first.values(), key=lambda found: (found[2], found[0] != VALIDITY, found[0]))
        ),
    )


class Workers:
    """Workers, in this process or in processes of their own, that are told the same things."""

    def __init__(self, plan: StackPlan, scope: Scope, options: SearchOptions, size: int) -> None:
        self.size = size
        self.level = 0
        self._alone: Worker | None = None
        self._processes: list[BaseProcess] = []
        self._pipes: list[Connection] = []
        if size == 1:
            self._alone = Worker(plan, scope, options, 1, 0)
            return
        methods = multiprocessing.get_all_start_methods()
        context: Any = multiprocessing.get_context("fork" if "fork" in methods else None)
        for me in range(size):
            ours, theirs = context.Pipe()
            arguments = (theirs, plan, scope, options, size, me)
            process = context.Process(target=_serve, args=arguments, daemon=True)
            process.start()
            theirs.close()
            self._processes.append(process)
            self._pipes.append(ours)
        self._collect()

    def expand(self, at_most: int) -> SearchTotals:
        """Let every worker expand so many states of this level, and exchange what they found."""
        reports: list[LevelReport] = self._ask("expand", at_most)
        if self.size > 1:
            for me, pipe in enumerate(self._pipes):
                others = [report for worker, report in enumerate(reports) if worker != me]
                states = [report.outboxes[me] for report in others if report.outboxes[me]]
                pipe.send(("take", ([report.updates for report in others], states)))
            self._collect()
            reports = self._ask("report")
        return _totals(reports)

    def next_level(self) -> int:
        """Go on to the next level, and say how many states it has."""
        self.level += 1
        return sum(self._ask("next_level"))

    def again(self) -> None:
        self.level = 0
        self._ask("again")

    def parent(self, fingerprint: int) -> int:
        """Return the fingerprint of the state from which this one was first reached."""
        if self._alone is not None:
            return self._alone.parent(fingerprint)
        pipe = self._pipes[fingerprint % self.size]
        pipe.send(("parent", (fingerprint,)))
        return int(_answer(pipe))

    def summaries(self) -> list[WorkerSummary]:
        return self._ask("summary")

    def save(self) -> list[bytes]:
        return self._ask("save")

    def restore(self, saved: list[bytes], level: int) -> None:
        self.level = level
        if self._alone is not None:
            self._alone.restore(saved[0])
            return
        for pipe, data in zip(self._pipes, saved, strict=True):
            pipe.send(("restore", (data,)))
        self._collect()

    def stop(self) -> None:
        # Closing the pipes would not do: a worker holds copies of those made before it began.
        for pipe in self._pipes:
            with suppress(OSError):
                pipe.send((STOP, ()))
            pipe.close()
        for process in self._processes:
            process.join(5)
            if process.is_alive():
                process.terminate()
                process.join()
        self._processes, self._pipes = [], []
        if self._alone is not None:
            self._alone.search.machine.forget()

    def _ask(self, what: str, *arguments: object) -> list[Any]:
        if self._alone is not None:
            method: Callable[..., Any] = getattr(self._alone, what)
            return [method(*arguments)]
        for pipe in self._pipes:
            pipe.send((what, arguments))
        return self._collect()

    def _collect(self) -> list[Any]:
        """Wait for the answers of all workers, and only then raise the error of one."""
        answers: list[Any] = []
        trouble: BaseException | None = None
        for pipe in self._pipes:
            try:
                answers.append(_answer(pipe))
            except _EXPECTED as error:
                trouble = error
        if trouble is not None:
            raise trouble
        return answers


def _answer(pipe: Connection) -> Any:
    answer = pipe.recv()
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _serve(
    pipe: Connection, plan: StackPlan, scope: Scope, options: SearchOptions, size: int, me: int
) -> None:
    """Do what is asked of a worker, in a process of its own, until told to stop."""
    import signal

    # The process that started the workers decides what an interrupt means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        worker = Worker(plan, scope, options, size, me)
        pipe.send(None)
    except _EXPECTED as error:
        pipe.send(error)
        return
    while True:
        try:
            what, arguments = pipe.recv()
        except (EOFError, OSError):
            return
        if what == STOP:
            return
        try:
            pipe.send(getattr(worker, what)(*arguments))
        except _EXPECTED as error:
            pipe.send(error)
        except Exception as error:
            pipe.send(RuntimeError(f"a worker failed: {type(error).__name__}: {error}"))
