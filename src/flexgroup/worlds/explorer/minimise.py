"""Smaller counterexamples: fewer messages, fewer processes, fewer destinations, fewer steps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.explorer import (
    INTERRUPT,
    Exploration,
    SearchLimits,
    SearchProgress,
)
from flexgroup.worlds.explorer.result import Violation
from flexgroup.worlds.explorer.scope import PlannedCast, Scope
from flexgroup.worlds.explorer.search_setup import SearchOptions

PATIENCE = SearchLimits(states=200_000, seconds=20.0)
"""The limits of the search in each smaller scope, and of the search for a shortest run."""


@dataclass(frozen=True)
class Effort:
    """How long to go on making a counterexample smaller, and who is told what is tried."""

    seconds: float | None = None
    """None stands for as long as it takes."""
    began: float = field(default_factory=time.monotonic)
    interrupted: Callable[[], bool] = lambda: False
    report: Callable[[Scope, SearchProgress], None] = lambda scope, progress: None

    @property
    def spent(self) -> str:
        """Why to stop now, if so."""
        if self.interrupted():
            return INTERRUPT
        if self.seconds is not None and self._left() <= 0:
            return f"--max-seconds {self.seconds:g}"
        return ""

    def explore(
        self, plan: StackPlan, scope: Scope, options: SearchOptions
    ) -> tuple[Violation, ...]:
        """Return the violations of a scope that are found with what is left of the effort."""
        limits = PATIENCE
        if self.seconds is not None:
            limits = replace(PATIENCE, seconds=min(PATIENCE.seconds or math.inf, self._left()))
        exploration = Exploration(plan, scope, options, limits, interrupted=self.interrupted)
        exploration.report = lambda progress: self.report(scope, progress)
        return exploration.run().violations

    def _left(self) -> float:
        assert self.seconds is not None
        return self.began + self.seconds - time.monotonic()


@dataclass(frozen=True)
class Minimised:
    """A scope of which nothing can be left out, and a run of it that breaks the property."""

    scope: Scope
    violation: Violation
    stopped_at: str = ""
    """The bound at which looking for something smaller ended, if it did not come to its end."""


def shortest(
    plan: StackPlan,
    scope: Scope,
    found: Violation,
    options: SearchOptions,
    effort: Effort | None = None,
) -> Violation:
    """Look for a run with the fewest steps; if that takes too long, keep the one that was found."""
    fully = replace(_only(options, found.name), reduce=False)
    for violation in (effort or Effort()).explore(plan, scope, fully):
        if violation.name == found.name:
            return violation
    return found


def minimise(
    plan: StackPlan,
    scope: Scope,
    found: Violation,
    options: SearchOptions,
    effort: Effort | None = None,
) -> Minimised:
    """Leave out what can be left out, as long as the same property can be broken."""
    effort = effort or Effort()
    chosen = _only(options, found.name)
    smallest = Minimised(scope, found)
    smaller = True
    while smaller:
        smaller = False
        for candidate in smaller_scopes(smallest.scope):
            if effort.spent:
                return replace(smallest, stopped_at=effort.spent)
            violations = effort.explore(plan, candidate, chosen)
            if violations:
                smallest = Minimised(candidate, violations[0])
                smaller = True
                break
    run = shortest(plan, smallest.scope, smallest.violation, options, effort)
    return Minimised(smallest.scope, run, "" if run.shortest else effort.spent)


def _only(options: SearchOptions, name: str) -> SearchOptions:
    """Restrict the search to one property, which may be one of the caller's own."""
    if any(extra.name == name for extra in options.extra_properties):
        extra_properties = tuple(extra for extra in options.extra_properties if extra.name == name)
        return replace(options, properties=("integrity",), extra_properties=extra_properties)
    return replace(options, properties=(name,), extra_properties=())


def smaller_scopes(scope: Scope) -> Iterator[Scope]:
    """List the scopes with a message, a process, a destination, a view or a fault less."""
    casts = scope.casts
    for place in range(len(casts)):
        yield _renumbered(scope, casts[:place] + casts[place + 1 :])
    for process in range(scope.processes if scope.processes > 1 else 0):
        without = _without_process(scope, process)
        if without is not None:
            yield without
    for place, cast in enumerate(casts):
        parts = scope.replicas or [(d,) for d in cast.destinations]
        for leaving in parts:
            fewer = tuple(d for d in cast.destinations if d not in leaving)
            if 0 < len(fewer) < len(cast.destinations):
                changed = replace(cast, destinations=fewer)
                yield replace(scope, casts=(*casts[:place], changed, *casts[place + 1 :]))
    for place in range(len(scope.liars)):
        yield replace(scope, liars=scope.liars[:place] + scope.liars[place + 1 :])
    for place in range(len(scope.views)):
        yield replace(scope, views=scope.views[:place] + scope.views[place + 1 :])
    for name in ("crashes", "suspicions", "losses", "duplicates", "timers", "restarts"):
        count = getattr(scope.bounds, name)
        if count:
            yield replace(scope, bounds=replace(scope.bounds, **{name: count - 1}))


def _without_process(scope: Scope, process: int) -> Scope | None:
    """Leave out a process, unless a message would lose its origin or its last destination, or it
    is one that may crash, suspect or be suspected by name, or a liar.

    The processes above it move down by one.
    """

    def moved(other: int) -> int:
        return other - 1 if other > process else other

    if process in scope.named:
        return None
    casts = []
    for cast in scope.casts:
        destinations = tuple(moved(d) for d in cast.destinations if d != process)
        if not destinations or cast.origin == process:
            return None
        casts.append(PlannedCast(moved(cast.origin), destinations))
    groups = tuple(tuple(moved(p) for p in group if p != process) for group in scope.groups)
    views = tuple(tuple(moved(p) for p in view if p != process) for view in scope.views)
    if not all(views):
        return None
    replicas = [tuple(moved(p) for p in group if p != process) for group in scope.replicas]
    return replace(
        scope,
        processes=scope.processes - 1,
        casts=tuple(casts),
        groups=groups,
        views=views,
        crashing=tuple(map(moved, scope.crashing)),
        suspecting=tuple((moved(p), moved(q)) for p, q in scope.suspecting),
        replicas=tuple(group for group in replicas if group),
        liars=tuple((moved(p), kind) for p, kind in scope.liars),
    )


def _renumbered(scope: Scope, casts: tuple[PlannedCast, ...]) -> Scope:
    """Number the clients without gaps, after one of them may have gone."""
    clients = sorted({cast.origin for cast in casts if cast.origin >= scope.processes})
    number = {client: scope.processes + place for place, client in enumerate(clients)}
    return replace(
        scope,
        casts=tuple(replace(cast, origin=number.get(cast.origin, cast.origin)) for cast in casts),
    )
