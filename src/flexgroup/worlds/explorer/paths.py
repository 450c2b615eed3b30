"""The run that leads to a state, rebuilt from the fingerprints of the states before it."""

from __future__ import annotations

from collections.abc import Callable

from flexgroup.worlds.explorer.machine import KINDS, RECEIVE
from flexgroup.worlds.explorer.schedule import ScheduleStep
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.search import DUPLICATION, EVENT, LOSS, Search, Transition

_WORDS = {LOSS: "lost", DUPLICATION: "doubled"}

ParentOf = Callable[[int], int]


def path_to(search: Search, fingerprint: int, parent_of: ParentOf) -> list[Transition]:
    """Return the transitions from the first state to one with this fingerprint.

    The fingerprints on the way are known; the transitions are found by trying all of each state.
    """
    fingerprints = [fingerprint]
    while (before := parent_of(fingerprints[-1])) >= 0:
        fingerprints.append(before)
    state = search.first
    path: list[Transition] = []
    for wanted in reversed(fingerprints[:-1]):
        transition = next(
            m for m in search.transitions_from(state) if search.canonical(m.after) == wanted
        )
        path.append(transition)
        state = transition.after
    return path


def schedule_of(search: Search, scope: Scope, path: list[Transition]) -> tuple[ScheduleStep, ...]:
    """Return the steps of a run in a form that means the same everywhere, clients' casts first."""
    steps = []
    if search.actors == scope.processes:
        steps = [
            ScheduleStep("cast", cast.origin, number=place)
            for place, cast in enumerate(scope.casts)
            if cast.origin >= scope.processes
        ]
    queues = _Queues(search)
    for transition in path:
        steps.append(queues.follow(transition))
    return tuple(steps)


class _Queues:
    """The channels in the order in which packets were sent, which a search does not keep."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._queues: dict[tuple[int, int], list[int]] = {}
        self._state = first = search.first
        for actor in range(search.actors):
            for event in search.in_flight.contents[first[2 * actor + 1]]:
                self._put(event)

    def follow(self, transition: Transition) -> ScheduleStep:
        machine = self._search.machine
        event = machine.events[transition.event]
        before = self._state
        self._state = transition.after
        if event.kind == RECEIVE:
            queue = self._queues[event.source, event.process]
            place = queue.index(transition.event)
            if transition.kind == DUPLICATION:
                queue.insert(place, transition.event)
            else:
                del queue[place]
            word = _WORDS.get(transition.kind, KINDS[RECEIVE])
            step = ScheduleStep(word, event.process, event.source, place)
        else:
            step = ScheduleStep(
                KINDS[event.kind], event.process, event.source, 0, event.name, event.number
            )
        if transition.kind == EVENT:
            for output in machine.step(before[2 * transition.actor], transition.event).outputs:
                self._put(output)
        return step

    def _put(self, event: int) -> None:
        packet = self._search.machine.events[event]
        self._queues.setdefault((packet.source, packet.process), []).append(event)
