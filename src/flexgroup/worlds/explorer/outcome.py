"""What an exploration says when it ends."""

from __future__ import annotations

from dataclasses import dataclass, field

from flexgroup.core.message import MessageId, message_id
from flexgroup.worlds.explorer.scope import LETTERS, Scope

Orders = tuple[tuple[MessageId, ...], ...]
"""For each process, what it delivered, in order."""


@dataclass(frozen=True)
class Happening:
    """One step of a run, in a form that means the same in every process."""

    kind: str
    """receive, cast, timer, choice, crash, suspect; or lost, doubled: a packet is."""
    process: int
    source: int = -1
    place: int = 0
    """Of a packet: how many older ones there are in its channel."""
    name: str = ""
    number: int = 0
    """Of a cast, its place in the scope; of a choice, the option."""


@dataclass(frozen=True)
class Violation:
    """A property that some run breaks, and the run."""

    name: str
    run: tuple[Happening, ...]
    shortest: bool = False
    """No run of this scope that breaks it has fewer steps."""

    @property
    def steps(self) -> int:
        """Without the casts of clients, which happen before anything else."""
        return sum(1 for happening in self.run if happening.kind != "cast")


@dataclass(frozen=True)
class Outcome:
    """The verdict on one scope, and what it cost."""

    scope: Scope
    states: int
    transitions: int
    depth: int
    frontier: int
    """States that were found and not expanded."""
    terminals: int
    complete: int
    """Terminal states in which every message was delivered wherever it should be."""
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
    """Bytes for visited states, frontier and tables, as far as they can be counted."""
    exchanges: int = 1
    """How many states count as one, at most, because of symmetry."""
    local_states: int = field(default=0)

    @property
    def exhausted(self) -> bool:
        return not self.stopped_at

    @property
    def broken(self) -> frozenset[str]:
        return frozenset(violation.name for violation in self.violations)

    def last_line(self) -> str:
        """An honest word on how much was seen."""
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
    """A name for each message whose identity does not depend on the schedule."""
    found: dict[MessageId, str] = {}
    counts: dict[int, int] = {}
    for place, cast in enumerate(scope.casts):
        seq = counts.get(cast.origin, 0)
        counts[cast.origin] = seq + 1
        found[message_id(cast.origin, seq)] = LETTERS[place]
    return found


def pairs_to_see(scope: Scope) -> list[tuple[MessageId, MessageId]]:
    """Either order of every two messages with a common destination."""
    casts = dict(zip(letters(scope), scope.casts, strict=True))
    return [
        (a, b)
        for a in casts
        for b in casts
        if a != b and set(casts[a].destinations) & set(casts[b].destinations)
    ]
