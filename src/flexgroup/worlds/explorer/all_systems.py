"""Every small system: all multisets of destination sets, each explored whole."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement
from typing import Any

from flexgroup.core.replicas import Replicas, replicas_of_sizes
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.comparison import Verdict, verdict_on
from flexgroup.worlds.explorer.explorer import SearchLimits, explore
from flexgroup.worlds.explorer.result import ExplorationResult
from flexgroup.worlds.explorer.scope import Destinations, Scope, from_clients
from flexgroup.worlds.explorer.search_setup import SearchOptions

LEAST = 2
"""The fewest destinations of a message: one to a single process orders nothing."""


def destination_sets(processes: int) -> list[Destinations]:
    return [
        tuple(process for process in range(processes) if mask >> process & 1)
        for mask in range(1 << processes)
        if mask.bit_count() >= LEAST
    ]


def systems(
    processes: int, messages: int, fifo: bool = True, replicas: Replicas = ()
) -> Iterator[Scope]:
    """List all systems of a size, with a client for each message."""
    for chosen in combinations_with_replacement(destination_sets(processes), messages):
        yield replace(from_clients(processes, *chosen, fifo=fifo), replicas=replicas)


def systems_for(
    plan: StackPlan, processes: int, messages: int, fifo: bool = True
) -> Iterator[Scope]:
    """List them for a stack: where it needs groups of replicas, each process is a group."""
    alone = replicas_of_sizes([1] * processes) if plan.needs_replicas else ()
    return systems(processes, messages, fifo, alone)


@dataclass(frozen=True)
class SystemOutcome:
    """What exploring one system came to."""

    verdict: Verdict
    states: int
    transitions: int


@dataclass
class SystemTotals:
    """What exploring all systems of one size came to."""

    stack: str
    processes: int
    messages: int
    systems: int = 0
    states: int = 0
    transitions: int = 0
    most_states: int = 0
    largest: str = ""
    violating: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    """The number of systems in which some schedule breaks a property, for each property."""
    examples: dict[str, Scope] = field(default_factory=dict)
    """The first of these systems, for each property."""
    not_exhausted: int = 0
    verdicts: list[Verdict] = field(default_factory=list)
    """One for each system, in the order of `systems`."""
    seconds: float = 0.0

    def add(self, outcome: SystemOutcome) -> None:
        verdict = outcome.verdict
        self.systems += 1
        self.verdicts.append(verdict)
        self.states += outcome.states
        self.transitions += outcome.transitions
        if outcome.states > self.most_states:
            self.most_states = outcome.states
            self.largest = verdict.scope.described()
        self.violating += bool(verdict.broken)
        self.not_exhausted += not verdict.exhausted
        for name in sorted(verdict.broken):
            self.broken[name] += 1
            self.examples.setdefault(name, verdict.scope)

    def to_json(self) -> dict[str, object]:
        return {
            "stack": self.stack,
            "processes": self.processes,
            "messages": self.messages,
            "systems": self.systems,
            "states": self.states,
            "transitions": self.transitions,
            "most_states": self.most_states,
            "violating": self.violating,
            "broken": dict(self.broken),
            "examples": {
                name: [cast.destinations for cast in scope.casts]
                for name, scope in self.examples.items()
            },
            "not_exhausted": self.not_exhausted,
            "seconds": round(self.seconds, 2),
        }


def explore_all(
    plan: StackPlan,
    processes: int,
    messages: int,
    *,
    fifo: bool = True,
    options: SearchOptions | None = None,
    limits: SearchLimits | None = None,
    workers: int = 1,
    elsewhere: Iterable[SystemOutcome] | None = None,
    report: Callable[[SystemTotals], None] = lambda totals: None,
    interrupted: Callable[[], bool] = lambda: False,
) -> SystemTotals:
    """Explore all systems of a size, each for all properties that can be broken in it.

    The limits are those of one system; the next one is explored nevertheless. What is explored
    `elsewhere` comes from there, in the order of systems.
    """
    began = time.monotonic()
    result = SystemTotals(plan.name, processes, messages)
    todo = systems_for(plan, processes, messages, fifo)
    how = options or SearchOptions(), limits or SearchLimits()
    for outcome in _outcomes(plan, how, todo, workers) if elsewhere is None else elsewhere:
        result.add(outcome)
        result.seconds = time.monotonic() - began
        report(result)
        if interrupted():
            result.not_exhausted += 1
            break
    return result


def _outcomes(
    plan: StackPlan, how: tuple[SearchOptions, SearchLimits], todo: Iterator[Scope], workers: int
) -> Iterator[SystemOutcome]:
    methods = multiprocessing.get_all_start_methods()
    if workers == 1 or "fork" not in methods:
        for scope in todo:
            yield _outcome(explore(plan, scope, *how, keep_going=True))
        return
    context: Any = multiprocessing.get_context("fork")
    # A plan holds classes, which may be a test's own: it is inherited, not sent.
    with context.Pool(workers, initializer=_remember, initargs=(plan, *how)) as pool:
        yield from map(_outcome, pool.imap(_explore, todo, chunksize=16))


def _outcome(result: ExplorationResult) -> SystemOutcome:
    return SystemOutcome(verdict_on(result), result.states, result.transitions)


_inherited: list[tuple[StackPlan, SearchOptions, SearchLimits]] = []


def _remember(plan: StackPlan, options: SearchOptions, limits: SearchLimits) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A pool that is done ends its processes with this signal and waits for them, and a library
    # that this process was forked with may have caught it.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _inherited.append((plan, options, limits))


def _explore(scope: Scope) -> ExplorationResult:
    plan, options, limits = _inherited[-1]
    return explore(plan, scope, options, limits, keep_going=True)
