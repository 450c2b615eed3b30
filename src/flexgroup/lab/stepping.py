"""A run at the state that an address leads to: what it is like there, and what may come next."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

from flexgroup.core.errors import UsageError
from flexgroup.core.message import MessageId
from flexgroup.core.stack import Stack
from flexgroup.lab.address import Address
from flexgroup.lab.drawn import PerformedRun, letters_of
from flexgroup.properties.verdict import Outcome, Verdict
from flexgroup.testing.packets_in_words import naming, packet_in_words
from flexgroup.worlds.bench import ImpossibleError
from flexgroup.worlds.explorer.machine import Local, before_cut, is_delivery, message_in
from flexgroup.worlds.explorer.property_checks import CONDUCT, INTEGRITY
from flexgroup.worlds.explorer.schedule import ScheduleStep
from flexgroup.worlds.explorer.search_setup import SearchOptions, new_search, promised
from flexgroup.worlds.explorer.staged import StagedRun

OPTIONS = SearchOptions(reduce=False, symmetry=False, follow_clients=True)
"""Clients multicast when they are told to, as members do."""


@dataclass(frozen=True)
class Move:
    """Something that may happen next."""

    step: ScheduleStep
    words: str
    """What arrives, or is offered: more than an address says."""
    fault: bool
    """It need not happen, ever."""


@dataclass(frozen=True)
class Judged:
    """A property at the state that one looks at."""

    name: str
    outcome: Outcome
    explanation: str
    since: int | None = None
    """The number of steps after which it was first violated."""


@dataclass(frozen=True)
class ProcessState:
    """One process, and what the last step has changed there."""

    process: int
    now: Local
    before: Local | None
    """None, if nothing has happened at all."""
    at_start: Stack

    @property
    def has_changed(self) -> bool:
        return self.before is not None and self.before is not self.now


def delivered_by(local: Local) -> list[MessageId]:
    """Return what a process has delivered, in order."""
    return [message_in(entry) for entry in local.history if is_delivery(entry)]


class Standing:
    """Where an address leads to."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.plan = address.plan
        self._search = search = new_search(self.plan, address.scope, OPTIONS)
        self.promised = promised(self.plan, address.scope)
        # The state before the last step is wanted as well, to see what that has changed.
        self.run = self._at(len(address.moves) - 1)
        self._before = list(self.run.state)
        if address.moves:
            self.run.follow(address.moves[-1])
        self._possible = self.run.possible()
        transitions = [transition for _, transition in self._possible]
        self.ended = search.is_over(self.run.state, transitions)
        self.letters = letters_of(address.whole.moves)

    def _at(self, place: int) -> StagedRun:
        """Return the run after so many steps."""
        steps = self.address.moves[: max(0, place)]
        run = StagedRun(self._search, self.address.scope)
        try:
            run.follow_all(steps)
        except UsageError:
            raise
        except Exception:  # whatever a handler raises is part of the run
            run = StagedRun(self._search, self.address.scope)
            for step in steps:
                run.follow(step)
        return run

    def _since(self, name: str) -> int:
        """Return after how many steps a property was first violated, which it is now.

        What is checked in every state stays violated, so the first is found by halves; anything
        else is violated where the run ends.
        """

        def broken(place: int) -> bool:
            return name in self._search.broken(self._at(place).state, terminal=False)

        places = range(len(self.address.moves))
        if not broken(len(self.address.moves)):
            return len(self.address.moves)
        return bisect_left(places, True, key=broken)

    @cached_property
    def performed(self) -> PerformedRun:
        return PerformedRun(self.plan, self.address.scope, self.address.moves, self.ended)

    @cached_property
    def verdicts(self) -> list[Verdict]:
        return self.performed.verdicts(self.promised)

    @property
    def violated(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.outcome is Outcome.VIOLATED]

    @property
    def moves(self) -> list[Move]:
        """What may happen next, in the order of kinds and processes."""
        return [
            Move(step, self._words(step, transition.event), not transition.sure)
            for step, transition in self._possible
        ]

    def words_of(self, place: int) -> str:
        """What happened as this step, from 1 on, besides what an address says."""
        packet = self.run.packets[place - 1]
        return packet_in_words(packet, naming(self.letters)) if packet is not None else ""

    @property
    def judged(self) -> list[Judged]:
        """All promised properties, those that are violated first."""
        found = []
        problems = [self.run.local(process).problem for process in range(self.run.search.actors)]
        failures = [text for text in problems if text and not text.startswith(INTEGRITY)]
        outcome = Outcome.VIOLATED if failures else Outcome.HOLDS
        found.append(self._judged(CONDUCT, outcome, "\n".join(failures)))
        for verdict in self.verdicts:
            found.append(self._judged(verdict.property, verdict.outcome, verdict.explanation))
        return sorted(found, key=lambda judged: judged.outcome is not Outcome.VIOLATED)

    def _judged(self, name: str, outcome: Outcome, explanation: str) -> Judged:
        violated = outcome is Outcome.VIOLATED
        return Judged(name, outcome, explanation, self._since(name) if violated else None)

    @property
    def processes(self) -> list[ProcessState]:
        """All processes, and all clients."""
        machine = self.run.search.machine
        return [
            ProcessState(
                process,
                self.run.local(process),
                machine.locals[self._before[2 * process]] if self.address.moves else None,
                machine.locals[self.run.search.first[2 * process]].host.stack,
            )
            for process in range(self.run.search.actors)
        ]

    @property
    def in_flight(self) -> int:
        search = self.run.search
        pending = (self.run.state[2 * actor + 1] for actor in range(search.actors))
        return sum(len(search.in_flight.contents[number]) for number in pending)

    def _words(self, step: ScheduleStep, number: int) -> str:
        event = self.run.search.machine.events[number]
        if step.crash_after:
            event = before_cut(event)
        if event.packet is not None:
            return packet_in_words(event.packet, naming(self.letters))
        return event.name if step.kind == "choice" else ""


def stand_at(address: Address) -> Standing:
    """Return where an address leads to; a UsageError says which of its moves cannot happen."""
    try:
        return Standing(address)
    except ImpossibleError as error:
        raise UsageError(f"{error}; go back to a step before it, or begin anew") from None
