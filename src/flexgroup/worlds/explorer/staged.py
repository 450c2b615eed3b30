"""A run that is staged step by step in the states of a search.

At every step it is known what may come next, in words that mean the same everywhere. So a run can
be followed from a list of steps, left at any of them, and gone on with in another way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from flexgroup.core.message import Packet
from flexgroup.worlds.bench import ImpossibleError
from flexgroup.worlds.explorer.budgets import RESTARTS
from flexgroup.worlds.explorer.in_flight import EMPTY
from flexgroup.worlds.explorer.machine import (
    CUT,
    KINDS,
    LOST,
    RECEIVE,
    RESTART,
    SUSPECT,
    TRUST,
    Event,
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
        self._settled = list(search.first)
        self._loose: dict[int, Local] = {}
        """The states of processes that are ahead of those in `_settled`, and have no number."""
        self._moved: set[int] = set()
        """The processes to which something else is in flight than `_settled` says."""
        self.beyond: list[int] = []
        """The steps that the scope does not let happen, counted from 1."""
        self.steps: list[ScheduleStep] = []
        self.packets: list[Packet | None] = []
        """The packet of each step, if it has one."""
        if search.actors == scope.processes:
            self.steps = [
                ScheduleStep("cast", cast.origin, number=place)
                for place, cast in scope.client_casts.items()
            ]
            self.packets = [None for _ in self.steps]
        # The channels in the order in which packets were sent, which a search does not keep.
        self._channels: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        for actor in range(search.actors):
            self._sent(list(search.in_flight.contents[self._settled[2 * actor + 1]]))
        self._moved.clear()

    @property
    def state(self) -> list[int]:
        """The state in which the run is, as the search has it."""
        machine = self.search.machine
        for process, local in self._loose.items():
            self._settled[2 * process] = machine.enrol(local)
        self._loose.clear()
        for process in self._moved:
            if self._is_gone(process):
                continue  # what is in flight to it is, too
            self._settled[2 * process + 1] = self._pending(process)
        self._moved.clear()
        return self._settled

    def local(self, process: int) -> Local:
        """The state of a process that the search follows."""
        return self.search.machine.locals[self.state[2 * process]]

    def possible(self) -> list[tuple[ScheduleStep, Transition]]:
        """List what may happen next, each thing once."""
        found = {self.named(t): t for t in reversed(self.search.possible_from(self.state))}
        return list(reversed(found.items()))

    def follow(self, step: ScheduleStep) -> Transition:
        """Let this happen, or raise an ImpossibleError; return it with where it leads to."""
        for transition in self.search.possible_from(self.state):
            process = self.search.machine.events[transition.event].process
            if process == step.process and self.named(transition) == step:
                return self.take(transition)
        beyond = self._beyond(step)
        if beyond is not None:
            self.beyond.append(len(self.steps) + 1)
            return self.take(beyond)
        said = step.command(self.scope).replace("\n", ", ")
        raise ImpossibleError(f"step {len(self.steps) + 1}, '{said}', cannot happen there")

    def _beyond(self, step: ScheduleStep) -> Transition | None:
        """Return what no search lets happen, and a run may tell of all the same: that a packet is
        lost, a process suspected or trusted again, though the scope has no such fault left."""
        search, state = self.search, self.state
        if step.crash_after or not 0 <= step.process < search.actors:
            return None
        pending = state[2 * step.process + 1]
        if step.kind == "lost":
            channel = self._channels.get((step.source, step.process), [])
            if step.place >= len(channel) or channel.index(channel[step.place]) != step.place:
                return None
            event = channel[step.place]
            after = list(state)
            if not self._is_gone(step.process):
                lost = step.source, step.place
                after[2 * step.process + 1] = self._pending(step.process, lost)
            return Transition(LOSS, step.process, event, 0, False, after)
        kind = {"suspect": SUSPECT, "trust": TRUST}.get(step.kind)
        local = search.machine.locals[state[2 * step.process]]
        members = {step.process, step.source}.issubset(range(self.scope.processes))
        if kind is None or not members or step.process == step.source or local.idle:
            return None
        told = Event(kind, step.process, step.source, None, 0, "", 0)
        number = search.machine.event(told)
        after = list(state)
        reaction = search.machine.step(state[2 * step.process], number)
        after[2 * step.process] = reaction.after
        for output in reaction.outputs:
            target = search.machine.events[output].process
            if not self._is_gone(target):
                after[2 * target + 1] = search.in_flight.append(after[2 * target + 1], output)
        return Transition(EVENT, step.process, number, pending, False, after)

    def _is_gone(self, process: int) -> bool:
        """Tell whether a process has crashed and cannot start again."""
        may_restart = self.search.budgets.left[self._settled[-1]][RESTARTS] > 0
        return self.search.machine.locals[self._settled[2 * process]].crashed and not may_restart

    def _pending(self, process: int, without: tuple[int, int] = (-1, -1)) -> int:
        """Return what is in flight to a process, but for one packet: its sender and its place."""
        pending = EMPTY
        for (source, to), sent in self._channels.items():
            for place, packet in enumerate(sent if to == process else ()):
                if (source, place) != without:
                    pending = self.search.in_flight.append(pending, packet)
        return pending

    def follow_all(self, steps: Sequence[ScheduleStep]) -> None:
        """Follow a run that was followed before, without keeping the states on the way."""
        for step in steps:
            if not self._hurry(step):
                self.follow(step)

    def _hurry(self, step: ScheduleStep) -> bool:
        """Let a packet arrive, which is nearly all that happens in a run, if nothing is odd."""
        machine = self.search.machine
        channel = self._channels.get((step.source, step.process), [])
        if step.kind != "receive" or step.crash_after or step.place >= len(channel):
            return False
        event = machine.events[channel[step.place]]
        if channel.index(channel[step.place]) != step.place or (step.place and self.scope.fifo):
            return False
        local = self._loose.get(step.process)
        if local is None:
            local = machine.locals[self._settled[2 * step.process]].twin()
        if local.crashed or local.problem or local.host.offers:
            return False
        # A handler that raises leaves a state that is of no use; it is found by going slowly.
        outputs = machine.tell(local, event)
        self._loose[step.process] = local
        del channel[step.place]
        self._moved.add(step.process)
        self._sent(outputs)
        self.steps.append(step)
        self.packets.append(event.packet)
        return True

    def take(self, transition: Transition) -> Transition:
        """Let one of the transitions out of this state happen; return it with where it leads to."""
        machine = self.search.machine
        state = self.state
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
            self._empty(event.process)
        transition = self.search.followed(state, transition)
        if transition.kind == EVENT:
            self._sent(machine.step(state[2 * transition.actor], transition.event).outputs)
        self.steps.append(step)
        self.packets.append(event.packet)
        self._settled = list(transition.after)
        self._moved.clear()
        return transition

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
            self._moved.add(event.process)

    def _empty(self, process: int) -> None:
        for source, target in self._channels:
            if target == process:
                self._channels[source, target].clear()
