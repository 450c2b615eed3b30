"""The search: every schedule of a scope, breadth first; so a counterexample is a shortest one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from flexgroup.membership_explorer.cluster import FAULTS, Cluster, Move, State
from flexgroup.membership_explorer.scope import ClusterScope
from flexgroup.membership_explorer.server import Installed
from flexgroup.worlds.explorer.explorer import INTERRUPT, SearchLimits, SearchProgress, nobody

AT_ONCE = 500
"""How many states are expanded between two looks at the clock and the limits."""


@dataclass(frozen=True)
class ClusterViolation:
    """A property that some run breaks, and the run; after `settle` nothing goes wrong any more."""

    name: str
    run: tuple[Move, ...]


@dataclass(frozen=True)
class ClusterResult:
    scope: ClusterScope
    states: int
    transitions: int
    depth: int
    frontier: int
    ends: int
    quiet: int
    """How many ends were quiet already; the others become quiet when all can talk."""
    lost: int
    """How many ends have too few servers left for these ever to go on."""
    local_states: int
    configurations: int
    """How many different configurations were installed somewhere."""
    seconds: float
    stopped_at: str
    violations: tuple[ClusterViolation, ...]

    @property
    def exhausted(self) -> bool:
        return not self.stopped_at

    def last_line(self) -> str:
        if self.violations:
            names = ", ".join(sorted({violation.name for violation in self.violations}))
            return f"violated: {names}; {self.states:,} states visited, depth {self.depth}"
        if self.exhausted:
            return f"exhausted: {self.states:,} states, depth {self.depth}; no property is violated"
        return (
            f"stopped at {self.stopped_at}: {self.states:,} states, depth {self.depth}, "
            f"{self.frontier:,} found and not expanded; no violation so far, "
            "which says nothing of the rest"
        )


@dataclass
class ClusterSearch:
    """What to explore, and how far."""

    scope: ClusterScope
    limits: SearchLimits = field(default_factory=SearchLimits)
    report: Callable[[SearchProgress], None] = nobody
    interrupted: Callable[[], bool] = lambda: False

    def run(self) -> ClusterResult:
        """Search up to the first violation."""
        self._began = time.monotonic()
        self._cluster = cluster = Cluster(self.scope)
        self._parents: dict[State, tuple[State, Move] | None] = {cluster.first: None}
        self._transitions = self._ends = self._quiet = self._lost = 0
        self._depth = 0
        level = [cluster.first]
        while level:
            found: list[State] = []
            for place, state in enumerate(level):
                if place % AT_ONCE == 0 and (reason := self._look(len(level) - place, len(found))):
                    return self._result(reason, len(level) - place + len(found), ())
                violation = self._expand(state, found)
                if violation is not None:
                    return self._result("", 0, (violation,))
            level = found
            if level:
                self._depth += 1
                if self.limits.depth is not None and self._depth >= self.limits.depth:
                    return self._result(f"--max-depth {self.limits.depth}", len(level), ())
        return self._result("", 0, ())

    def _look(self, left: int, found: int) -> str:
        """The bound that is reached, if any."""
        seconds = time.monotonic() - self._began
        states = len(self._parents)
        self.report(SearchProgress(states, self._depth, left + found, seconds, self._transitions))
        return INTERRUPT if self.interrupted() else self.limits.reached(states, seconds, 0)

    def _expand(self, state: State, found: list[State]) -> ClusterViolation | None:
        cluster = self._cluster
        moves = cluster.moves(state)
        for move in moves:
            after = cluster.after(state, move)
            self._transitions += 1
            if after in self._parents:
                continue
            self._parents[after] = state, move
            if broken := cluster.broken(after):
                return ClusterViolation(broken[0], self._run_to(after))
            found.append(after)
        if not moves or all(move.kind in FAULTS for move in moves):
            return self._end(state)
        return None

    def _end(self, state: State) -> ClusterViolation | None:
        """Nothing happens any more unless something goes wrong: see how it would go on."""
        self._ends += 1
        if self._cluster.is_quiet(state):
            self._quiet += 1
            return None
        settled, broken = self._cluster.settle(state)
        self._lost += not broken and self._cluster.is_lost(settled)
        if broken:
            return ClusterViolation(broken[0], (*self._run_to(state), Move("settle")))
        return None

    def _run_to(self, state: State) -> tuple[Move, ...]:
        moves = []
        while (parent := self._parents[state]) is not None:
            state, move = parent
            moves.append(move)
        return tuple(reversed(moves))

    def _result(
        self, stopped_at: str, frontier: int, violations: tuple[ClusterViolation, ...]
    ) -> ClusterResult:
        machine = self._cluster.machine
        configurations = {
            entry.configuration
            for log in machine.logs
            for entry in log
            if isinstance(entry, Installed)
        }
        return ClusterResult(
            scope=self.scope,
            states=len(self._parents),
            transitions=self._transitions,
            depth=self._depth,
            frontier=frontier,
            ends=self._ends,
            quiet=self._quiet,
            lost=self._lost,
            local_states=len(machine.locals),
            configurations=len(configurations),
            seconds=time.monotonic() - self._began,
            stopped_at=stopped_at,
            violations=violations,
        )
