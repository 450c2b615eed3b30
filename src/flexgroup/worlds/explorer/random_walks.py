"""Seeded random walks through scopes that are too large to be searched whole.

A *random walk* takes any possible transition with equal chance, but for faults: each of them comes
at a random time, or else all would come at once. *PCT*, probabilistic concurrency
testing (Burckhardt and others 2010; for messages, Ozkan and others 2018), draws priorities
instead: each channel gets one, the highest that can transition does, and at d - 1 steps drawn
beforehand the channel about to transition falls behind all others. What has to happen for a bug to
show can be stated as an order of some d events; such a bug of depth d shows in one walk with a
probability of at least 1 / (c * k ** (d - 1)), where c is the number of channels and k the
number of steps. Over channels that reorder, every packet counts as a channel, and so does
every fault over any.

Priorities alone are unfair: two processes that answer each other could do so for ever, and the
packet that would end that never arrives. So priorities hold for twice as many steps as a walk
should have, and from there on every transition has an equal chance. Some walks are endless all the
same, since a wrong suspicion is never taken back here: two replicas that suspect each other may
depose one another for ever. Such a walk is given up, and the result says so.

Every walk has a seed of its own, so that it is the same walk whichever worker takes it.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, NamedTuple

from flexgroup.core.message import MessageId
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.explorer import INTERRUPT, SearchLimits, SearchProgress, nobody
from flexgroup.worlds.explorer.machine import RECEIVE, SUSPECT, ClientAddressedError
from flexgroup.worlds.explorer.paths import schedule_of
from flexgroup.worlds.explorer.result import ExplorationResult, Violation
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.search import EVENT, Search, Transition
from flexgroup.worlds.explorer.search_setup import SearchOptions, new_search
from flexgroup.worlds.explorer.spilled import NONE
from flexgroup.worlds.explorer.visited import Visited
from flexgroup.worlds.explorer.workers import seen_orders

LONGEST = 100_000
"""Steps after which any walk is taken for endless."""

TIMES_LONGER = 20
"""The same of a walk that is so many times longer than it should be. What it has been through stays
in memory until it is over."""

TIMES_BY_PRIORITY = 2
"""Priorities hold for so many times the steps that a walk should have."""

PILOTS = 20
"""How many walks tell how long walks are, before priorities change and faults come at random."""

AT_ONCE = 100
"""How many walks are taken between two looks at the clock and the limits."""

MOST_LOCAL_STATES = 50_000
"""States of processes that a walker remembers before it forgets them all: they take some kilobytes
each, and in a large scope most of them are met once."""

Choose = Callable[[list[Transition]], Transition]

Elsewhere = Callable[["WalkOptions", list[range]], Iterator["WalkTotals"]]
"""Takes walks, some at once, somewhere else; returns what they came to, in the order of walks."""


class EvenChances:
    """Any transition with equal chance, and any fault at any of so many steps."""

    def __init__(self, random: Random, steps: int) -> None:
        self._random = random
        self._steps = steps

    def choose(self, transitions: list[Transition]) -> Transition:
        sure = [transition for transition in transitions if transition.sure]
        faults = [transition for transition in transitions if not transition.sure]
        if not sure or (faults and self._random.random() * self._steps < len(faults)):
            return self._random.choice(faults)
        return self._random.choice(sure)


class Priorities:
    """PCT: the channel with the highest priority transitions; at some steps it falls behind.

    A walk that is longer than it should be is taken to its end with even chances.
    """

    def __init__(self, search: Search, random: Random, depth: int, steps: int) -> None:
        self._search = search
        self._random = random
        self._priorities: dict[tuple[int, ...], float] = {}
        self._lowest = 0.0
        self._step = 0
        self._unfair = TIMES_BY_PRIORITY * steps
        self._evenly = EvenChances(random, steps)
        self._falls = {random.randrange(max(1, steps)) for _ in range(depth - 1)}

    @property
    def channels(self) -> int:
        return len(self._priorities)

    def choose(self, transitions: list[Transition]) -> Transition:
        if self._step >= self._unfair:
            return self._evenly.choose(transitions)
        for transition in transitions:
            self._priorities.setdefault(self._channel(transition), 1.0 + self._random.random())
        best = max(transitions, key=self._priority)
        if self._step in self._falls:
            self._lowest -= 1.0
            self._priorities[self._channel(best)] = self._lowest
            best = max(transitions, key=self._priority)
        self._step += 1
        return best

    def _priority(self, transition: Transition) -> float:
        return self._priorities[self._channel(transition)]

    def _channel(self, transition: Transition) -> tuple[int, ...]:
        event = self._search.machine.events[transition.event]
        if event.kind != RECEIVE:
            suspect = event.source if event.kind == SUSPECT else -1
            return (event.process, -1 - event.kind, event.number, suspect)
        if transition.kind == EVENT and self._search.in_flight.fifo:
            return (event.process, event.source)
        return (event.process, event.source, transition.event, transition.kind)


@dataclass(frozen=True)
class WalkOptions:
    """How walks are taken."""

    seed: int
    depth: int
    """The depth of the bugs that PCT looks for; 0 stands for even chances."""
    search: SearchOptions


@dataclass
class WalkTotals:
    """What some walks came to; the last of them is the only one that may have broken something."""

    walks: int = 0
    steps: int = 0
    deepest: int = 0
    complete: int = 0
    endless: int = 0
    """How many were given up before their end."""
    channels: int = 0
    states: list[int] = field(default_factory=list)
    """The fingerprints of states that the walker had not met before."""
    seen_orders: frozenset[tuple[MessageId, MessageId]] = frozenset()
    local_states: int = 0
    violations: tuple[Violation, ...] = ()


class Walk(NamedTuple):
    """The way that was gone, the properties that its last state breaks, and whether it had come to
    an end there."""

    path: list[Transition]
    broken: list[str]
    is_over: bool


class Walker:
    """Takes walks, by number."""

    def __init__(self, plan: StackPlan, scope: Scope, how: WalkOptions) -> None:
        self._plan = plan
        self._scope = scope
        self._how = how
        self.search = new_search(plan, scope, how.search)
        self._seen_orders: frozenset[tuple[MessageId, MessageId]] = frozenset()
        self.steps = 1
        """How long a walk should be, for the draw of where priorities change and faults come."""
        self._longest = LONGEST
        for pilot in range(PILOTS):
            chances = EvenChances(Random(f"{how.seed}/pilot/{pilot}"), self.steps)
            self.steps = max(self.steps, len(self._walk(chances.choose).path))
        self._longest = min(LONGEST, TIMES_LONGER * self.steps)

    def take(self, numbers: range) -> WalkTotals:
        """Take these walks, up to the first that breaks a property."""
        totals = WalkTotals()
        for number in numbers:
            search = self.search
            random = Random(f"{self._how.seed}/{number}")
            priorities = (
                Priorities(search, random, self._how.depth, self.steps) if self._how.depth else None
            )
            choose = priorities.choose if priorities else EvenChances(random, self.steps).choose
            path, broken, is_over = self._walk(choose)
            totals.walks += 1
            totals.steps += len(path)
            totals.deepest = max(totals.deepest, len(path))
            totals.channels = max(totals.channels, priorities.channels if priorities else 0)
            totals.complete += is_over and not broken
            totals.endless += not is_over
            for transition in path:
                state = search.canonical(transition.after)
                if search.visited.add(state, NONE, 0) == NONE:
                    totals.states.append(state)
            if broken:
                run = schedule_of(search, self._scope, path)
                totals.violations = tuple(Violation(name, run) for name in broken)
                break
            totals.local_states = max(totals.local_states, len(search.machine.locals))
            if len(search.machine.locals) > MOST_LOCAL_STATES:
                self._forget()
        self._seen_orders |= seen_orders(self.search)
        totals.seen_orders = self._seen_orders
        return totals

    def _forget(self) -> None:
        """Begin with empty tables, but for the states that were visited."""
        old = self.search
        self._seen_orders |= seen_orders(old)
        self.search = new_search(self._plan, self._scope, self._how.search)
        self.search.visited = old.visited
        old.machine.forget()

    def _walk(self, choose: Choose) -> Walk:
        """One walk to its end, or to the first state that breaks a property."""
        search = self.search
        state = search.start
        path: list[Transition] = []
        while len(path) < self._longest:
            transitions = search.possible_from(state)
            if search.is_over(state, transitions):
                broken = search.broken(state, terminal=True)
                if broken or not transitions:
                    return Walk(path, broken, True)
            transition = search.followed(state, choose(transitions))
            path.append(transition)
            state = transition.after
            broken = search.broken(state, terminal=False)
            if broken:
                return Walk(path, broken, True)
        return Walk(path, [], False)


@dataclass(frozen=True)
class RandomWalks:
    """How many walks to take, and how; `take` takes them."""

    plan: StackPlan
    scope: Scope
    walks: int
    """The most walks; there are fewer if one finds something."""
    seed: int = 1
    depth: int = 0
    """The depth of the bugs that PCT looks for; 0 stands for even chances."""
    options: SearchOptions = field(default_factory=SearchOptions)
    limits: SearchLimits = field(default_factory=SearchLimits)
    workers: int = 1
    elsewhere: Elsewhere | None = None
    report: Callable[[SearchProgress], None] = nobody
    interrupted: Callable[[], bool] = lambda: False

    def take(self) -> ExplorationResult:
        options = replace(self.options, reduce=False, symmetry=False)
        try:
            return self._take(WalkOptions(self.seed, self.depth, options))
        except ClientAddressedError:
            options = replace(options, follow_clients=True)
            return self._take(WalkOptions(self.seed, self.depth, options))

    def _take(self, how: WalkOptions) -> ExplorationResult:
        began = time.monotonic()
        walker = Walker(self.plan, self.scope, how)
        sums = WalkTotals()
        visited = Visited()
        stopped_at = ""
        for totals in self._totals(walker, how):
            sums.walks += totals.walks
            sums.steps += totals.steps
            sums.deepest = max(sums.deepest, totals.deepest)
            sums.complete += totals.complete
            sums.endless += totals.endless
            sums.channels = max(sums.channels, totals.channels)
            sums.seen_orders |= totals.seen_orders
            sums.local_states = max(sums.local_states, totals.local_states)
            sums.violations = totals.violations
            for state in totals.states:
                visited.add(state, NONE, 0)
            seconds = time.monotonic() - began
            stopped_at = self.limits.reached(visited.count, seconds, visited.bytes_used())
            if self.interrupted():
                stopped_at = INTERRUPT
            if sums.violations or stopped_at:
                break
            self.report(SearchProgress(visited.count, sums.deepest, 0, seconds, sums.steps))
        walker.search.machine.forget()
        return ExplorationResult(
            scope=self.scope,
            states=visited.count,
            transitions=sums.steps,
            depth=sums.deepest,
            frontier=0,
            terminals=sums.walks,
            complete=sums.complete,
            stopped_at=stopped_at or f"--walks {self.walks}",
            violations=sums.violations,
            seen_orders=sums.seen_orders,
            terminal_orders=frozenset(),
            notes=self._notes(sums, walker.steps),
            seconds=time.monotonic() - began,
            memory=visited.bytes_used(),
            local_states=sums.local_states,
        )

    def _totals(self, walker: Walker, how: WalkOptions) -> Iterator[WalkTotals]:
        """Take all walks, some at once, and return what they came to, in the order of walks."""
        todo = [
            range(first, min(first + AT_ONCE, self.walks))
            for first in range(0, self.walks, AT_ONCE)
        ]
        if self.elsewhere is not None:
            yield from self.elsewhere(how, todo)
            return
        methods = multiprocessing.get_all_start_methods()
        if self.workers == 1 or "fork" not in methods:
            yield from map(walker.take, todo)
            return
        context: Any = multiprocessing.get_context("fork")
        # A plan holds classes, which may be a test's own: it is inherited, not sent.
        arguments = (self.plan, self.scope, how)
        with context.Pool(self.workers, initializer=_begin, initargs=arguments) as pool:
            yield from pool.imap(_take_some, todo)

    def _notes(self, sums: WalkTotals, steps: int) -> tuple[str, ...]:
        kind = f"PCT walks of depth {self.depth}" if self.depth else "random walks"
        notes = [f"{sums.walks:,} {kind} from seed {self.seed}, {sums.steps:,} steps"]
        if self.depth and sums.channels:
            odds = sums.channels * steps ** (self.depth - 1)
            notes.append(
                f"a bug of depth {self.depth} shows in one walk with a chance of at least 1 in "
                f"{odds:,} ({sums.channels} channels, {steps} steps)"
            )
            if sums.deepest > steps:
                notes.append(
                    f"some walks are longer, up to {sums.deepest} steps: of what must come late in "
                    "them, nothing is said"
                )
        if sums.endless:
            notes.append(
                f"{sums.endless:,} walks were given up after so many steps that they may be "
                f"endless, up to {sums.deepest:,}: nothing is said of how they end"
            )
        return tuple(notes)


_walkers: list[Walker] = []


def _begin(plan: StackPlan, scope: Scope, how: WalkOptions) -> None:
    """Make the walker of a process that takes some of the walks."""
    # The process that started the workers decides what an interrupt means; see also `all_systems`.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _walkers.append(Walker(plan, scope, how))


def _take_some(numbers: range) -> WalkTotals:
    return _walkers[-1].take(numbers)
