"""The result of an exploration."""

from __future__ import annotations

from dataclasses import dataclass, field

from flexgroup.core.message import MessageId, message_id
from flexgroup.worlds.explorer.schedule import ScheduleStep
from flexgroup.worlds.explorer.scope import LETTERS, Scope

Orders = tuple[tuple[MessageId, ...], ...]
"""The messages that each process delivered, in order."""


@dataclass(frozen=True)
class Violation:
    """A property that some run breaks, and the run."""

    name: str
    run: tuple[ScheduleStep, ...]
    shortest: bool = False
    """Whether no run of this scope that breaks it has fewer steps."""

    @property
    def steps(self) -> int:
        """How many steps there are after the casts of clients, which come first."""
        return sum(1 for step in self.run if step.kind != "cast")


@dataclass(frozen=True)
class ExplorationResult:
    """The verdict on one scope, and what it took to reach it."""

    scope: Scope
    states: int
    transitions: int
    depth: int
    frontier: int
    """How many states were found and not expanded."""
    terminals: int
    complete: int
    """How many terminal states have every message delivered wherever it should be."""
    stopped_at: str
    """The bound that ended the search; empty if every reachable state was visited."""
    violations: tuple[Violation, ...]
    seen_orders: frozenset[tuple[MessageId, MessageId]]
    """Pairs (a, b) such that some process delivered a, and then b, in some run."""
    terminal_orders: frozenset[Orders]
    notes: tuple[str, ...] = ()
    passes: int = 1
    seconds: float = 0.0
    memory: int = 0
    """The bytes of visited states and frontier."""
    exchanges: int = 1
    """How many states count as one, at most, because of symmetry."""
    local_states: int = field(default=0)
    in_files: int = 0
    """How many visited states were in files when the search ended."""
    posted: int = 0
    """How many states workers have found and sent to each other."""
    bytes_exchanged: int = 0

    @property
    def exhausted(self) -> bool:
        return not self.stopped_at

    @property
    def broken(self) -> frozenset[str]:
        return frozenset(violation.name for violation in self.violations)

    def last_line(self) -> str:
        """Say what was found, and how much of the scope was seen."""
        if self.violations:
            names = ", ".join(sorted(self.broken))
            return f"violated: {names}; {self.states:,} states visited, depth {self.depth}"
        if self.exhausted:
            return f"exhausted: {self.states:,} states, depth {self.depth}; no property is violated"
        return (
            f"stopped at {self.stopped_at}: {self.states:,} states, depth {self.depth}, "
            f"{self.frontier:,} found and not expanded; no violation so far, "
            "which says nothing of the rest"
        )


def letters(scope: Scope) -> dict[MessageId, str]:
    """Return a letter for each message, if its identity does not depend on the schedule."""
    found: dict[MessageId, str] = {}
    counts: dict[int, int] = {}
    for place, cast in enumerate(scope.casts):
        seq = counts.get(cast.origin, 0)
        counts[cast.origin] = seq + 1
        found[message_id(cast.origin, seq)] = LETTERS[place]
    return found


def pairs_to_see(scope: Scope) -> list[tuple[MessageId, MessageId]]:
    """List either order of every two messages with a common destination."""
    casts = dict(zip(letters(scope), scope.casts, strict=True))
    return [
        (a, b)
        for a in casts
        for b in casts
        if a != b and set(casts[a].destinations) & set(casts[b].destinations)
    ]
