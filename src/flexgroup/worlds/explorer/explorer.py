"""Exploring a scope: the search, made again until what it learnt on the way is nothing new."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.crew import Crew, Standing
from flexgroup.worlds.explorer.machine import ClientAddressedError
from flexgroup.worlds.explorer.outcome import Outcome, Violation
from flexgroup.worlds.explorer.paths import moves_to, run_of
from flexgroup.worlds.explorer.prepared import Manner, prepare
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.symmetry import AsymmetricError
from flexgroup.worlds.explorer.worker import Summary

if TYPE_CHECKING:
    from flexgroup.worlds.explorer.snapshot import Snapshot

AT_ONCE = 2000
"""How many states are expanded between two looks at the clock and the bounds..."""

AT_ONCE_TOGETHER = 10_000
"""... and by each worker of several, who have more to tell each other then."""

LEARNING = 5000
"""States after which a search that learnt something new begins again; until then it goes on."""

NO_SYMMETRY = "clients are told apart by this protocol: symmetry was not used"
ONE_WORKER = "states come back to earlier ones: the reduced search needs to be one process"
TIMERS_IGNORED = "timers were set and never ran out: allow some with --timers"

INTERRUPT = "an interrupt"


@dataclass(frozen=True)
class Limits:
    """Where to stop; None is nowhere."""

    states: int | None = None
    depth: int | None = None
    seconds: float | None = None
    memory: int | None = None
    """In bytes."""

    def reached(self, states: int, seconds: float, memory: int) -> str:
        if self.states is not None and states >= self.states:
            return f"--max-states {self.states}"
        if self.seconds is not None and seconds >= self.seconds:
            return f"--max-seconds {self.seconds:g}"
        if self.memory is not None and memory >= self.memory:
            return f"--max-memory {self.memory >> 20}"
        return ""


@dataclass(frozen=True)
class Progress:
    """How far a search is."""

    states: int
    depth: int
    frontier: int
    seconds: float
    transitions: int


def nobody(progress: Progress) -> None:
    """For those who do not want to know."""


@dataclass
class Exploration:
    """What to explore and how; `run` does it, and can be told to go on where it stopped."""

    plan: StackPlan
    scope: Scope
    manner: Manner = field(default_factory=Manner)
    limits: Limits = field(default_factory=Limits)
    keep_going: bool = False
    """Go on after a violation, and find a run for each property that can be broken."""
    workers: int = 1
    report: Callable[[Progress], None] = nobody
    interrupted: Callable[[], bool] = lambda: False
    keep: Callable[[Snapshot], None] | None = None
    """Takes what is needed to resume a search that was stopped."""

    def run(self, saved: Snapshot | None = None) -> Outcome:
        self._began = time.monotonic()
        self._notes: list[str] = []
        self._passes = saved.passes if saved is not None else 1
        if saved is not None:
            self.manner = saved.manner
        while True:
            crew: Crew | None = None
            try:
                crew = Crew(self.plan, self.scope, self.manner, self.workers)
                if saved is not None:
                    crew.restore(saved.workers, saved.level)
                return self._search(crew)
            except AsymmetricError:
                self._notes.append(NO_SYMMETRY)
                self.manner = replace(self.manner, symmetry=False)
            except ClientAddressedError:
                self.manner = replace(self.manner, follow_clients=True)
            except _LoopsError:
                self._notes.append(ONE_WORKER)
                self.workers = 1
            finally:
                if crew is not None:
                    crew.dismiss()

    def _search(self, crew: Crew) -> Outcome:
        while True:
            stopped_at, standing = self._levels(crew)
            decided = bool(standing.findings) and not self.keep_going
            # A violation is one whatever was learnt; that there is none must not rest on less.
            if stopped_at or decided or not (self.manner.reduce and standing.learnt):
                break
            self._passes += 1
            crew.again()
        if stopped_at and self.keep is not None:
            from flexgroup.worlds.explorer.snapshot import Snapshot

            self.keep(
                Snapshot(
                    self.plan.name, self.scope, self.manner, self._passes, crew.level, crew.save()
                )
            )
        return self._outcome(crew, stopped_at, standing)

    def _levels(self, crew: Crew) -> tuple[str, Standing]:
        """Search level by level; the bound that was reached, or nothing."""
        while True:
            standing = crew.expand(AT_ONCE if crew.size == 1 else AT_ONCE_TOGETHER)
            if standing.findings and not self.keep_going:
                return "", standing
            if standing.strays and self.manner.reduce and self.workers > 1:
                raise _LoopsError
            if not standing.more:
                if self._in_vain(standing) or not crew.next_level():
                    return "", standing
                if self.limits.depth is not None and crew.level >= self.limits.depth:
                    return f"--max-depth {self.limits.depth}", standing
            seconds = time.monotonic() - self._began
            if self.interrupted():
                return INTERRUPT, standing
            reason = self.limits.reached(standing.states, seconds, standing.memory)
            if reason:
                return reason, standing
            self.report(
                Progress(
                    standing.states, crew.level, standing.frontier, seconds, standing.transitions
                )
            )

    def _in_vain(self, standing: Standing) -> bool:
        """The search will have to be made again, and has learnt for long enough."""
        return self.manner.reduce and standing.learnt and standing.states >= LEARNING

    def _outcome(self, crew: Crew, stopped_at: str, standing: Standing) -> Outcome:
        summaries: list[Summary] = crew.summaries()
        if any(summary.timers_seen for summary in summaries) and not self.scope.bounds.timers:
            self._notes.append(TIMERS_IGNORED)
        return Outcome(
            self.scope,
            standing.states,
            standing.transitions,
            crew.level,
            standing.frontier if stopped_at else 0,
            sum(summary.terminals for summary in summaries),
            sum(summary.complete for summary in summaries),
            stopped_at,
            self._violations(crew, standing),
            frozenset().union(*(summary.seen_orders for summary in summaries)),
            frozenset().union(*(summary.terminal_orders for summary in summaries)),
            tuple(self._notes),
            self._passes,
            time.monotonic() - self._began,
            standing.memory,
            max(summary.exchanges for summary in summaries),
            max(summary.local_states for summary in summaries),
        )

    def _violations(self, crew: Crew, standing: Standing) -> tuple[Violation, ...]:
        if not standing.findings:
            return ()
        search = prepare(self.plan, self.scope, self.manner)
        return tuple(
            Violation(
                name,
                run_of(search, self.scope, moves_to(search, mark, crew.parent)),
                shortest=not self.manner.reduce,
            )
            for name, mark, _ in standing.findings
        )


class _LoopsError(Exception):
    """The reduced search met states of earlier levels, which only one process can deal with."""


def explore(
    plan: StackPlan,
    scope: Scope,
    manner: Manner | None = None,
    limits: Limits | None = None,
    keep_going: bool = False,
    workers: int = 1,
) -> Outcome:
    """Every schedule of a scope: the first violation, or that there is none."""
    exploration = Exploration(
        plan, scope, manner or Manner(), limits or Limits(), keep_going, workers
    )
    return exploration.run()
