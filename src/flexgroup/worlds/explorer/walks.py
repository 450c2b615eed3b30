"""Beyond exhaustion: seeded walks through scopes that are too large to be searched whole.

A *random walk* takes any possible move with equal chance. *PCT*, probabilistic concurrency
testing (Burckhardt and others 2010; for messages, Ozkan and others 2018), draws priorities
instead: each channel gets one, the highest that can move does, and at d - 1 steps drawn
beforehand the channel about to move falls behind all others. What has to happen for a bug to
show can be stated as an order of some d events; such a bug of depth d shows in one walk with a
probability of at least 1 / (c * k ** (d - 1)), where c is the number of channels and k the
number of steps. Over channels that reorder, every packet counts as a channel.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from random import Random

from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.explorer import Limits, Progress, nobody
from flexgroup.worlds.explorer.machine import RECEIVE, ClientAddressedError
from flexgroup.worlds.explorer.moves import HAPPENS, Move
from flexgroup.worlds.explorer.outcome import Outcome, Violation
from flexgroup.worlds.explorer.paths import run_of
from flexgroup.worlds.explorer.prepared import Manner, prepare
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.search import Search
from flexgroup.worlds.explorer.worker import memory_of, seen_orders

LONGEST = 100_000
"""Steps after which a walk is taken for endless."""

Choose = Callable[[list[Move]], Move]


class EvenChance:
    """Every move with equal chance."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def __call__(self, moves: list[Move]) -> Move:
        return self._random.choice(moves)

    @property
    def channels(self) -> int:
        return 0


class Priorities:
    """PCT: the channel with the highest priority moves; at some steps it falls behind."""

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

    def __call__(self, moves: list[Move]) -> Move:
        for move in moves:
            self._priorities.setdefault(self._channel(move), 1.0 + self._random.random())
        best = max(moves, key=self._priority)
        if self._step in self._falls:
            self._lowest -= 1.0
            self._priorities[self._channel(best)] = self._lowest
            best = max(moves, key=self._priority)
        self._step += 1
        return best

    def _priority(self, move: Move) -> float:
        return self._priorities[self._channel(move)]

    def _channel(self, move: Move) -> tuple[int, ...]:
        event = self._search.machine.events[move.event]
        if event.kind != RECEIVE:
            return (event.process, -1 - event.kind, event.number)
        if move.kind == HAPPENS and self._search.inboxes.fifo:
            return (event.process, event.source)
        return (event.process, event.source, move.event, move.kind)


def walk(
    plan: StackPlan,
    scope: Scope,
    walks: int,
    seed: int = 1,
    depth: int = 0,
    manner: Manner | None = None,
    limits: Limits | None = None,
    report: Callable[[Progress], None] = nobody,
    interrupted: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Take so many walks, or fewer if one finds something. A depth above 0 asks for PCT."""
    limits = limits or Limits()
    manner = replace(manner or Manner(), reduce=False, symmetry=False)
    try:
        return _walk(plan, scope, walks, seed, depth, manner, limits, report, interrupted)
    except ClientAddressedError:
        manner = replace(manner, follow_clients=True)
        return _walk(plan, scope, walks, seed, depth, manner, limits, report, interrupted)


def _walk(
    plan: StackPlan,
    scope: Scope,
    walks: int,
    seed: int,
    depth: int,
    manner: Manner,
    limits: Limits,
    report: Callable[[Progress], None],
    interrupted: Callable[[], bool],
) -> Outcome:
    began = time.monotonic()
    search = prepare(plan, scope, manner)
    longest = _steps_at_first(search)
    taken = steps = deepest = complete = channels = 0
    violations: tuple[Violation, ...] = ()
    stopped_at = ""
    while taken < walks and not violations and not stopped_at:
        random = Random(f"{seed}/{taken}")
        choose = Priorities(search, random, depth, longest) if depth else EvenChance(random)
        path, broken = _one(search, choose)
        taken += 1
        steps += len(path)
        deepest = max(deepest, len(path))
        longest = max(longest, len(path))
        channels = max(channels, choose.channels)
        complete += not broken
        for move in path:
            search.visited.add(search.canonical(move.after), -1, 0)
        if broken:
            run = run_of(search, scope, path)
            violations = tuple(Violation(name, run) for name in broken)
        seconds = time.monotonic() - began
        stopped_at = limits.reached(search.visited.count, seconds, memory_of(search))
        if interrupted():
            stopped_at = "an interrupt"
        if taken % 100 == 0:
            report(Progress(search.visited.count, deepest, 0, seconds, steps))
    kind = f"PCT walks of depth {depth}" if depth else "random walks"
    notes = [f"{taken:,} {kind} from seed {seed}, {steps:,} steps"]
    if depth and channels:
        odds = channels * longest ** (depth - 1)
        notes.append(
            f"a bug of depth {depth} shows in one walk with a chance of at least 1 in "
            f"{odds:,} ({channels} channels, {longest} steps)"
        )
    return Outcome(
        scope,
        search.visited.count,
        steps,
        deepest,
        0,
        taken,
        complete,
        stopped_at or f"--walks {walks}",
        violations,
        seen_orders(search),
        frozenset(),
        tuple(notes),
        1,
        time.monotonic() - began,
        memory_of(search),
        1,
        len(search.machine.locals),
    )


def _steps_at_first(search: Search) -> int:
    """How long a walk may be, for the first draw of where priorities change."""
    path, _ = _one(search, EvenChance(Random(0)))
    return len(path)


def _one(search: Search, choose: Choose) -> tuple[list[Move], list[str]]:
    """One walk to its end, or to the first state that breaks a property."""
    state = search.first
    path: list[Move] = []
    while len(path) < LONGEST:
        moves = search.moves(state)
        if not moves:
            return path, search.broken(state, terminal=True)
        move = choose(moves)
        path.append(move)
        state = move.after
        broken = search.broken(state, terminal=False)
        if broken:
            return path, broken
    return path, []
