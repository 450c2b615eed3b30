"""Seeded random walks through scopes that are too large to be searched whole.

A *random walk* takes any possible transition with equal chance. *PCT*, probabilistic concurrency
testing (Burckhardt and others 2010; for messages, Ozkan and others 2018), draws priorities
instead: each channel gets one, the highest that can transition does, and at d - 1 steps drawn
beforehand the channel about to transition falls behind all others. What has to happen for a bug to
show can be stated as an order of some d events; such a bug of depth d shows in one walk with a
probability of at least 1 / (c * k ** (d - 1)), where c is the number of channels and k the
number of steps. Over channels that reorder, every packet counts as a channel.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.explorer import INTERRUPT, SearchLimits, SearchProgress, nobody
from flexgroup.worlds.explorer.machine import RECEIVE, ClientAddressedError
from flexgroup.worlds.explorer.paths import schedule_of
from flexgroup.worlds.explorer.result import ExplorationResult, Violation
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.search import EVENT, Search, Transition
from flexgroup.worlds.explorer.search_setup import SearchOptions, new_search
from flexgroup.worlds.explorer.workers import memory_of, seen_orders

LONGEST = 100_000
"""Steps after which a walk is taken for endless."""

Choose = Callable[[list[Transition]], Transition]


class Priorities:
    """PCT: the channel with the highest priority transitions; at some steps it falls behind."""

    def __init__(self, search: Search, random: Random, depth: int, steps: int) -> None:
        self._search = search
        self._random = random
        self._priorities: dict[tuple[int, ...], float] = {}
        self._lowest = 0.0
        self._step = 0
        self._falls = {random.randrange(max(1, steps)) for _ in range(depth - 1)}

    @property
    def channels(self) -> int:
        return len(self._priorities)

    def choose(self, transitions: list[Transition]) -> Transition:
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
            return (event.process, -1 - event.kind, event.number)
        if transition.kind == EVENT and self._search.in_flight.fifo:
            return (event.process, event.source)
        return (event.process, event.source, transition.event, transition.kind)


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
    report: Callable[[SearchProgress], None] = nobody
    interrupted: Callable[[], bool] = lambda: False

    def take(self) -> ExplorationResult:
        options = replace(self.options, reduce=False, symmetry=False)
        try:
            return self._take(new_search(self.plan, self.scope, options))
        except ClientAddressedError:
            options = replace(options, follow_clients=True)
            return self._take(new_search(self.plan, self.scope, options))

    def _take(self, search: Search) -> ExplorationResult:
        began = time.monotonic()
        # How long a walk may be, for the first draw of where priorities change.
        longest = len(_one(search, Random(0).choice)[0])
        taken = steps = deepest = complete = channels = 0
        violations: tuple[Violation, ...] = ()
        stopped_at = ""
        while taken < self.walks and not violations and not stopped_at:
            random = Random(f"{self.seed}/{taken}")
            priorities = Priorities(search, random, self.depth, longest) if self.depth else None
            path, broken = _one(search, priorities.choose if priorities else random.choice)
            taken += 1
            steps += len(path)
            deepest = max(deepest, len(path))
            longest = max(longest, len(path))
            channels = max(channels, priorities.channels if priorities else 0)
            complete += not broken
            for transition in path:
                search.visited.add(search.canonical(transition.after), -1, 0)
            if broken:
                run = schedule_of(search, self.scope, path)
                violations = tuple(Violation(name, run) for name in broken)
            seconds = time.monotonic() - began
            stopped_at = self.limits.reached(search.visited.count, seconds, memory_of(search))
            if self.interrupted():
                stopped_at = INTERRUPT
            if taken % 100 == 0:
                self.report(SearchProgress(search.visited.count, deepest, 0, seconds, steps))
        kind = f"PCT walks of depth {self.depth}" if self.depth else "random walks"
        notes = [f"{taken:,} {kind} from seed {self.seed}, {steps:,} steps"]
        if self.depth and channels:
            odds = channels * longest ** (self.depth - 1)
            notes.append(
                f"a bug of depth {self.depth} shows in one walk with a chance of at least 1 in "
                f"{odds:,} ({channels} channels, {longest} steps)"
            )
        return ExplorationResult(
            scope=self.scope,
            states=search.visited.count,
            transitions=steps,
            depth=deepest,
            frontier=0,
            terminals=taken,
            complete=complete,
            stopped_at=stopped_at or f"--walks {self.walks}",
            violations=violations,
            seen_orders=seen_orders(search),
            terminal_orders=frozenset(),
            notes=tuple(notes),
            seconds=time.monotonic() - began,
            memory=memory_of(search),
            local_states=len(search.machine.locals),
        )


def _one(search: Search, choose: Choose) -> tuple[list[Transition], list[str]]:
    """One walk to its end, or to the first state that breaks a property."""
    state = search.first
    path: list[Transition] = []
    while len(path) < LONGEST:
        transitions = search.transitions_from(state)
        if search.is_over(state, transitions):
            broken = search.broken(state, terminal=True)
            if broken or not transitions:
                return path, broken
        transition = choose(transitions)
        path.append(transition)
        state = transition.after
        broken = search.broken(state, terminal=False)
        if broken:
            return path, broken
    return path, []
