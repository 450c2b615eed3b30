"""A run that is staged step by step in the states of a search.

At every step it is known what may come next, in words that mean the same everywhere. So a run can
be followed from a list of steps, left at any of them, and gone on with in another way.
"""

from __future__ import annotations

from collections import defaultdict

from flexgroup.worlds.bench import ImpossibleError
from flexgroup.worlds.explorer.machine import (
    CUT,
    KINDS,
    LOST,
    RECEIVE,
    RESTART,
    Local,
    before_cut,
    effects_of_cut,
)
from flexgroup.worlds.explorer.schedule import ScheduleStep
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.search import DUPLICATION, EVENT, LOSS, Search, Transition

_WORDS = {LOSS: "lost", DUPLICATION: "doubled"}

BETWEEN_TWO = ("receive", "lost", "doubled", "suspect", "trust")
NUMBERED = ("cast", "choice", "restart", "view")
"""The kinds of steps that have a source, and a number."""


class StagedRun:
    """A run from where processes start, in the states of a search that need not search."""

    def __init__(self, search: Search, scope: Scope) -> None:
        self.search = search
        self.scope = scope
        self.state = search.first
        self.path: list[Transition] = []
        self.steps: list[ScheduleStep] = []
        if search.actors == scope.processes:
            self.steps = [
                ScheduleStep("cast", cast.origin, number=place)
                for place, cast in scope.client_casts.items()
            ]
        # The channels in the order in which packets were sent, which a search does not keep.
        self._channels: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        for actor in range(search.actors):
            self._sent(list(search.in_flight.contents[self.state[2 * actor + 1]]))

    def local(self, process: int) -> Local:
        """The state of a process that the search follows."""
        return self.search.machine.locals[self.state[2 * process]]

    def possible(self) -> list[tuple[ScheduleStep, Transition]]:
        """List what may happen next, each thing once."""
        found = {self.named(t): t for t in reversed(self.search.possible_from(self.state))}
        return list(reversed(found.items()))

    def follow(self, step: ScheduleStep) -> None:
        """Let this happen, or raise an ImpossibleError."""
        for transition in self.search.possible_from(self.state):
            process = self.search.machine.events[transition.event].process
            if process == step.process and self.named(transition) == step:
                self.take(transition)
                return
        said = step.command(self.scope).replace("\n", ", ")
        raise ImpossibleError(f"step {len(self.steps) + 1}, '{said}', cannot happen there")

    def take(self, transition: Transition) -> None:
        """Let one of the transitions out of this state happen."""
        machine = self.search.machine
        step = self.named(transition)
        event = machine.events[transition.event]
        if event.kind == CUT:
            event = before_cut(event)
        if event.kind == RECEIVE:
            channel = self._channels[event.source, event.process]
            if transition.kind == DUPLICATION:
                channel.insert(step.place, channel[step.place])
            else:
                del channel[step.place]
        elif event.kind == RESTART and event.number == LOST:
            for source, target in self._channels:
                if target == event.process:
                    self._channels[source, target].clear()
        transition = self.search.followed(self.state, transition)
        if transition.kind == EVENT:
            before = self.state[2 * transition.actor]
            self._sent(machine.step(before, transition.event).outputs)
        self.path.append(transition)
        self.steps.append(step)
        self.state = transition.after

    def named(self, transition: Transition) -> ScheduleStep:
        """Return what a transition out of this state is called."""
        machine = self.search.machine
        event = machine.events[transition.event]
        after = 0
        if event.kind == CUT:
            after = effects_of_cut(event)
            event = before_cut(event)
        place = 0
        if event.kind == RECEIVE:
            place = self._channels[event.source, event.process].index(machine.event(event))
        word = _WORDS.get(transition.kind, KINDS[event.kind])
        # What an event has besides means something to the search only.
        source = event.source if word in BETWEEN_TWO else -1
        name = event.name if word == "timer" else ""
        number = event.number if word in NUMBERED else 0
        return ScheduleStep(word, event.process, source, place, name, number, after)

    def _sent(self, packets: list[int]) -> None:
        for packet in packets:
            event = self.search.machine.events[packet]
            self._channels[event.source, event.process].append(packet)
