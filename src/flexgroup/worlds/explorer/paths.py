"""The run that leads to a state, rebuilt from the fingerprints of the states before it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from flexgroup.worlds.explorer.machine import (
    CUT,
    KINDS,
    LOST,
    RECEIVE,
    RESTART,
    before_cut,
    effects_of_cut,
)
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
            for place, cast in scope.client_casts.items()
        ]
    machine = search.machine
    # The channels in the order in which packets were sent, which a search does not keep.
    channels: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    state = search.first
    sent = [
        packet
        for actor in range(search.actors)
        for packet in search.in_flight.contents[state[2 * actor + 1]]
    ]
    for transition in path:
        for packet in sent:
            channels[machine.events[packet].source, machine.events[packet].process].append(packet)
        event = machine.events[transition.event]
        after = 0
        if event.kind == CUT:
            after = effects_of_cut(event)
            event = before_cut(event)
        place = 0
        if event.kind == RECEIVE:
            channel = channels[event.source, event.process]
            packet = machine.event(event)
            place = channel.index(packet)
            if transition.kind == DUPLICATION:
                channel.insert(place, packet)
            else:
                del channel[place]
        elif event.kind == RESTART and event.number == LOST:
            for source, target in channels:
                if target == event.process:
                    channels[source, target].clear()
        word = _WORDS.get(transition.kind, KINDS[event.kind])
        steps.append(
            ScheduleStep(word, event.process, event.source, place, event.name, event.number, after)
        )
        sent = []
        if transition.kind == EVENT:
            sent = machine.step(state[2 * transition.actor], transition.event).outputs
        state = transition.after
    return tuple(steps)
