"""Smaller counterexamples: fewer messages, fewer processes, fewer destinations, fewer steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.explorer import Limits, explore
from flexgroup.worlds.explorer.outcome import Violation
from flexgroup.worlds.explorer.prepared import Manner
from flexgroup.worlds.explorer.scope import Cast, Scope

PATIENCE = Limits(states=200_000, seconds=20.0)
"""For each smaller scope that is tried, and for proving that a run is a shortest one."""


@dataclass(frozen=True)
class Smallest:
    """A scope of which nothing can be left out, and a run of it that breaks the property."""

    scope: Scope
    violation: Violation


def shortest(plan: StackPlan, scope: Scope, found: Violation, manner: Manner) -> Violation:
    """A run with the fewest steps, or the one that was found if the search would take too long."""
    outcome = explore(plan, scope, replace(_only(manner, found.name), reduce=False), PATIENCE)
    for violation in outcome.violations:
        if violation.name == found.name:
            return violation
    return found


def minimise(plan: StackPlan, scope: Scope, found: Violation, manner: Manner) -> Smallest:
    """Leave out what can be left out, as long as the same property can be broken."""
    chosen = _only(manner, found.name)
    smallest = Smallest(scope, found)
    smaller = True
    while smaller:
        smaller = False
        for candidate in smaller_scopes(smallest.scope):
            outcome = explore(plan, candidate, chosen, PATIENCE)
            if outcome.violations:
                smallest = Smallest(candidate, outcome.violations[0])
                smaller = True
                break
    return Smallest(smallest.scope, shortest(plan, smallest.scope, smallest.violation, manner))


def _only(manner: Manner, name: str) -> Manner:
    """Look for this property alone; those of the caller's own are always looked at."""
    if any(watch.name == name for watch in manner.watches):
        watches = tuple(watch for watch in manner.watches if watch.name == name)
        return replace(manner, properties=("integrity",), watches=watches)
    return replace(manner, properties=(name,), watches=())


def smaller_scopes(scope: Scope) -> Iterator[Scope]:
    """What is one step smaller: a message, a process, a destination or a fault less."""
    casts = scope.casts
    for place in range(len(casts)):
        yield _renumbered(scope, casts[:place] + casts[place + 1 :])
    for process in range(scope.processes if scope.processes > 1 else 0):
        without = _without_process(scope, process)
        if without is not None:
            yield without
    for place, cast in enumerate(casts):
        if len(cast.destinations) > 1:
            for leaving in cast.destinations:
                fewer = tuple(d for d in cast.destinations if d != leaving)
                changed = replace(cast, destinations=fewer)
                yield replace(scope, casts=(*casts[:place], changed, *casts[place + 1 :]))
    for name in ("crashes", "suspicions", "losses", "duplicates", "timers"):
        count = getattr(scope.bounds, name)
        if count:
            yield replace(scope, bounds=replace(scope.bounds, **{name: count - 1}))


def _without_process(scope: Scope, process: int) -> Scope | None:
    """The processes above it move down by one; None if a message would have no destination."""

    def moved(other: int) -> int:
        return other - 1 if other > process else other

    casts = []
    for cast in scope.casts:
        destinations = tuple(moved(d) for d in cast.destinations if d != process)
        if not destinations or cast.origin == process:
            return None
        casts.append(Cast(moved(cast.origin), destinations))
    groups = tuple(tuple(moved(p) for p in group if p != process) for group in scope.groups)
    return replace(scope, processes=scope.processes - 1, casts=tuple(casts), groups=groups)


def _renumbered(scope: Scope, casts: tuple[Cast, ...]) -> Scope:
    """Clients without gaps in their numbers, after one of them may have gone."""
    clients = sorted({cast.origin for cast in casts if cast.origin >= scope.processes})
    number = {client: scope.processes + place for place, client in enumerate(clients)}
    return replace(
        scope,
        casts=tuple(replace(cast, origin=number.get(cast.origin, cast.origin)) for cast in casts),
    )
