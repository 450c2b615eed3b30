"""The run that leads to a state, rebuilt from the fingerprints of the states before it."""

from __future__ import annotations

from collections.abc import Callable

from flexgroup.core.errors import UsageError
from flexgroup.worlds.explorer.schedule import ScheduleStep
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.search import Search, Transition
from flexgroup.worlds.explorer.staged import StagedRun

ParentOf = Callable[[int], int]


def path_to(search: Search, fingerprint: int, parent_of: ParentOf) -> list[Transition]:
    """Return the transitions from where the search began to a state with this fingerprint.

    The fingerprints on the way are known; the transitions are found by trying all of each state.
    """
    fingerprints = [fingerprint]
    while (before := parent_of(fingerprints[-1])) >= 0:
        fingerprints.append(before)
    state = search.start
    path: list[Transition] = []
    for wanted in reversed(fingerprints[:-1]):
        found = [m for m in search.transitions_from(state) if search.canonical(m.after) == wanted]
        if not found:
            raise UsageError(
                "a run that the search found does not happen again, so a layer knows more than its "
                "state: a list, dict or set inside of another is shared by all copies of a state, "
                "and has to be a record or a tuple; try it with: flexgroup conform MODULE"
            )
        transition = found[0]
        path.append(transition)
        state = transition.after
    return path


def schedule_of(search: Search, scope: Scope, path: list[Transition]) -> tuple[ScheduleStep, ...]:
    """Return the steps of a run in a form that means the same everywhere, from where processes
    start; the path begins where the search does."""
    run = StagedRun(search, scope)
    for transition in [*search.prelude, *path]:
        run.take(transition)
    return tuple(run.steps)
