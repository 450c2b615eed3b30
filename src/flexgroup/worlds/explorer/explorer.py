"""Exploring a scope: searching it, again and again until the reduction learns nothing new."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from flexgroup.core.errors import UsageError
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.machine import ClientAddressedError
from flexgroup.worlds.explorer.paths import path_to, schedule_of
from flexgroup.worlds.explorer.result import ExplorationResult, Violation
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.search_setup import SearchOptions, new_search
from flexgroup.worlds.explorer.snapshot import SearchSnapshot
from flexgroup.worlds.explorer.spilled import SpillFile
from flexgroup.worlds.explorer.symmetry import AsymmetricError
from flexgroup.worlds.explorer.workers import JOIN_AT, SearchTotals, Workers

AT_ONCE = 2000
"""How many states are expanded between two looks at the clock and the limits, at least."""

LEARNING = 5000
"""How many states a search visits before it begins again because it learnt something new."""

NO_SYMMETRY = "clients are told apart by this protocol: symmetry was not used"
ONE_WORKER = "states come back to earlier ones: the reduced search needs to be one process"
TIMERS_IGNORED = "timers were set and never ran out: allow some with --timers"

INTERRUPT = "an interrupt"

NO_FILES = "the folder for temporary files, which TMPDIR names, takes no more"


@dataclass(frozen=True)
class SearchLimits:
    """Where to stop a search; None stands for no limit."""

    states: int | None = None
    depth: int | None = None
    seconds: float | None = None
    memory: int | None = None
    """The most memory, in bytes."""

    def reached(self, states: int, seconds: float, memory: int) -> str:
        if self.states is not None and states >= self.states:
            return f"--max-states {self.states}"
        if self.seconds is not None and seconds >= self.seconds:
            return f"--max-seconds {self.seconds:g}"
        if self.memory is not None and memory >= self.memory:
            return f"--max-memory {self.memory >> 20}"
        return ""


@dataclass(frozen=True)
class SearchProgress:
    """How far a search has come."""

    states: int
    depth: int
    frontier: int
    seconds: float
    transitions: int


def nobody(progress: SearchProgress) -> None:
    """Report progress to nobody."""


@dataclass
class Exploration:
    """What to explore and how; `run` does it, or goes on where it was stopped."""

    plan: StackPlan
    scope: Scope
    options: SearchOptions = field(default_factory=SearchOptions)
    limits: SearchLimits = field(default_factory=SearchLimits)
    keep_going: bool = False
    """Go on after a violation, and find a run for each property that can be broken."""
    workers: int = 1
    memory: int = 0
    """How many bytes of memory states may take before some go to files; 0 for no limit."""
    join_at: int = JOIN_AT
    """How many states a level has when several workers divide it."""
    report: Callable[[SearchProgress], None] = nobody
    interrupted: Callable[[], bool] = lambda: False
    keep: Callable[[SearchSnapshot], None] | None = None
    """Takes what is needed to resume a search that was stopped."""

    def run(self, saved: SearchSnapshot | None = None) -> ExplorationResult:
        self._began = time.monotonic()
        self._notes: list[str] = []
        self._passes = saved.passes if saved is not None else 1
        if self.memory:
            _check_folder()
        if saved is not None:
            self.options = saved.options
        while True:
            workers: Workers | None = None
            try:
                workers = Workers(
                    self.plan,
                    self.scope,
                    self.options,
                    self.workers,
                    memory=self.memory,
                    join_at=self.join_at,
                )
                if saved is not None:
                    workers.restore(saved.workers, saved.level)
                return self._search(workers)
            except AsymmetricError:
                self._notes.append(NO_SYMMETRY)
                self.options = replace(self.options, symmetry=False)
            except ClientAddressedError:
                self.options = replace(self.options, follow_clients=True)
            except _LoopsError:
                self._notes.append(ONE_WORKER)
                self.workers = 1
                saved = None
            finally:
                if workers is not None:
                    workers.stop()

    def _search(self, workers: Workers) -> ExplorationResult:
        while True:
            stopped_at, totals = self._levels(workers)
            decided = bool(totals.findings) and not self.keep_going
            # A violation is one whatever was learnt; that there is none must not rest on less.
            if stopped_at or decided or not (self.options.reduce and totals.learnt):
                break
            self._passes += 1
            workers.again()
        if stopped_at and self.keep is not None:
            self.keep(
                SearchSnapshot(
                    self.plan.name,
                    self.scope,
                    self.options,
                    self._passes,
                    workers.level,
                    workers.save(),
                )
            )
        return self._outcome(workers, stopped_at, totals)

    def _levels(self, workers: Workers) -> tuple[str, SearchTotals]:
        """Search level by level, and return the limit that was reached, if any."""
        while True:
            totals = workers.expand(AT_ONCE)
            if totals.findings and not self.keep_going:
                return "", totals
            if totals.strays and self.options.reduce and workers.several:
                raise _LoopsError
            if not totals.more:
                if self._in_vain(totals) or not workers.next_level():
                    return "", totals
                if self.limits.depth is not None and workers.level >= self.limits.depth:
                    return f"--max-depth {self.limits.depth}", totals
            if totals.trouble:
                reason = f"--memory {self.memory >> 20}, as {NO_FILES} ({totals.trouble})"
                return reason, workers.exchange(totals)
            seconds = time.monotonic() - self._began
            reason = self.limits.reached(totals.states, seconds, totals.memory)
            if self.interrupted():
                reason = INTERRUPT
            if reason:
                return reason, workers.exchange(totals)
            self.report(
                SearchProgress(
                    totals.states, workers.level, totals.frontier, seconds, totals.transitions
                )
            )

    def _in_vain(self, totals: SearchTotals) -> bool:
        """Whether the search will have to be made again, and has learnt for long enough."""
        return self.options.reduce and totals.learnt and totals.states >= LEARNING

    def _outcome(
        self, workers: Workers, stopped_at: str, totals: SearchTotals
    ) -> ExplorationResult:
        summaries = workers.summaries()
        if any(summary.timers_seen for summary in summaries) and not self.scope.bounds.timers:
            self._notes.append(TIMERS_IGNORED)
        return ExplorationResult(
            scope=self.scope,
            states=totals.states,
            transitions=totals.transitions,
            depth=workers.level,
            frontier=totals.frontier if stopped_at else 0,
            terminals=sum(summary.terminals for summary in summaries),
            complete=sum(summary.complete for summary in summaries),
            stopped_at=stopped_at,
            violations=self._violations(workers, totals),
            seen_orders=frozenset().union(*(summary.seen_orders for summary in summaries)),
            terminal_orders=frozenset().union(*(summary.terminal_orders for summary in summaries)),
            notes=tuple(self._notes),
            passes=self._passes,
            seconds=time.monotonic() - self._began,
            memory=totals.memory,
            exchanges=max(summary.exchanges for summary in summaries),
            local_states=max(summary.local_states for summary in summaries),
            in_files=totals.in_files,
            posted=sum(summary.posted for summary in summaries),
            bytes_exchanged=workers.bytes_exchanged,
        )

    def _violations(self, workers: Workers, totals: SearchTotals) -> tuple[Violation, ...]:
        if not totals.findings:
            return ()
        search = new_search(self.plan, self.scope, self.options)
        violations = tuple(
            Violation(
                found.property,
                schedule_of(search, self.scope, path_to(search, found.fingerprint, workers.parent)),
                shortest=not self.options.reduce,
            )
            for found in totals.findings
        )
        search.machine.forget()
        return violations


def _check_folder() -> None:
    """Refuse a limit on memory where there is no place for what is beyond it."""
    try:
        SpillFile().close()
    except OSError as error:
        raise UsageError(
            "with --memory, states beyond it go to temporary files, and none can be written "
            f"({error.strerror or error}): name another folder with TMPDIR"
        ) from None


class _LoopsError(Exception):
    """The reduced search met states of earlier levels, which only one process can deal with."""


def explore(
    plan: StackPlan,
    scope: Scope,
    options: SearchOptions | None = None,
    limits: SearchLimits | None = None,
    keep_going: bool = False,
    workers: int = 1,
    memory: int = 0,
) -> ExplorationResult:
    """Try every schedule of a scope, up to the first violation."""
    exploration = Exploration(
        plan,
        scope,
        options or SearchOptions(),
        limits or SearchLimits(),
        keep_going,
        workers,
        memory,
    )
    return exploration.run()
