"""The search: all reachable states, breadth first, one level after the other.

A state is a row of numbers: for each process that is followed the number of its state and of
its pending, and last the number of what may still go wrong. Its fingerprint is the exclusive or
of the fingerprints of the parts, so that a transition costs only the parts that it changes.
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

from librt.vecs import vec
from mypy_extensions import i32, i64

from flexgroup.worlds.explorer.budgets import (
    CRASHES,
    DUPLICATES,
    LOSSES,
    RESTARTS,
    STOCKS,
    Budgets,
)
from flexgroup.worlds.explorer.frontier import StateQueue
from flexgroup.worlds.explorer.in_flight import InFlightPackets
from flexgroup.worlds.explorer.machine import (
    CHOICE,
    CRASH,
    KEPT,
    LOST,
    RESTART,
    SUSPECT,
    TIMER,
    TOLD,
    TRUST,
    Event,
    Local,
    Machine,
)
from flexgroup.worlds.explorer.ownership import Sharing
from flexgroup.worlds.explorer.property_checks import CONDUCT, INTEGRITY, Histories, PropertyChecks
from flexgroup.worlds.explorer.reduction import ALL, Reduction
from flexgroup.worlds.explorer.spilled import NONE
from flexgroup.worlds.explorer.symmetry import Symmetry
from flexgroup.worlds.explorer.visited import Visited

# What visited states and a page of a queue may take of the memory, as parts of it.
A_THIRD: Final = 3
A_PAGE: Final = 16

# What a transition is: an event at a process, or something that the network does to a packet.
EVENT: Final = 0
LOSS: Final = 1
DUPLICATION: Final = 2


@final
class Transition:
    """A transition out of a state, and the state it leads to."""

    __slots__ = ("actor", "after", "event", "kind", "rest", "sure")

    def __init__(
        self, kind: int, actor: int, event: int, rest: int, sure: bool, after: list[int]
    ) -> None:
        self.kind = kind
        self.actor = actor
        self.event = event
        self.rest = rest
        """What is in flight to the process besides the packet that arrives."""
        self.sure = sure
        """Whether it happens sometime; a fault need not."""
        self.after = after
        """The state it leads to; empty if that is not computed yet (`Search.followed`)."""


class StateViolation(NamedTuple):
    """A property that does not hold in a state, and the level of the state."""

    property: str
    fingerprint: int
    level: int


@final
class Search:
    """The frontier, what was visited, and what was found."""

    def __init__(
        self,
        *,
        machine: Machine,
        in_flight: InFlightPackets,
        budgets: Budgets,
        checks: PropertyChecks,
        actors: int,
        first: list[int],
        reduction: Reduction | None,
        symmetry: Symmetry | None,
        notices: bool,
        memory: int = 0,
        prelude: list[Transition] | None = None,
    ) -> None:
        self.machine = machine
        self.in_flight = in_flight
        self.budgets = budgets
        self.checks = checks
        self.actors = actors
        self.reduction = reduction
        self.symmetry = symmetry
        self.notices = notices
        """Whether some layer listens to suspicions."""
        self.sharing: Sharing | None = None
        """What there is to know of the others, if this is one of several searches."""
        self.memory = memory
        """How many bytes states may take before some go to files; 0 for no limit."""
        self.visited = Visited(memory // A_THIRD)
        self.inherited = 0
        """How many visited states count for another of several searches."""
        self.level = 0
        self.transitions = 0
        self.terminals = 0
        self.complete = 0
        """Terminal states in which everything was delivered."""
        self.loops = 0
        """Reduced states that led nowhere new, and were expanded fully."""
        self.strays = 0
        """Transitions to states of this level or an earlier one."""
        self.findings: list[StateViolation] = []
        self.found: set[str] = set()
        self.terminal_orders: set[tuple[int, ...]] = set()
        self._stride: i64 = 2 * actors + 1
        self.frontier = self.queue()
        """The states of this level that are not expanded yet."""
        self.upcoming = self.queue()
        self._now = vec[i32](first)
        self._after = vec[i32](first)
        self._fingerprint = 0
        self._canonical = 0
        self._sure = 0
        """How many transitions were taken that are sure to happen sometime, unlike faults."""
        self._unsure = 0
        self._ahead = 0
        self._collected: list[Transition] | None = None
        self._only_list = False
        self._by_name = machine.crashes_by_name or machine.suspicions_by_name
        self._stock_left = False
        self._faults_possible = False
        self.first = first
        """The state in which processes start."""
        self.prelude = prelude or []
        """What has happened before the search begins."""
        self.start = self.prelude[-1].after if self.prelude else first
        """The state in which the search begins."""
        self._now = vec[i32](self.start)
        self._load(self._now)
        self._first(self.start)

    def again(self) -> Search:
        """The same search at its beginning, with the tables that this one has filled."""
        return Search(
            machine=self.machine,
            in_flight=self.in_flight,
            budgets=self.budgets,
            checks=self.checks,
            actors=self.actors,
            first=self.first,
            reduction=self.reduction,
            symmetry=self.symmetry,
            notices=self.notices,
            memory=self.memory,
            prelude=self.prelude,
        )

    def _first(self, first: list[int]) -> None:
        fingerprint = self.fingerprint(first)
        canonical = self._lowest(self._now, fingerprint)
        self.visited.add(canonical, NONE, 0)
        self.frontier.append(self._now, fingerprint)
        self.check(self._now, canonical, 0)

    # The search.

    def queue(self) -> StateQueue:
        """Return an empty queue of states."""
        a_state = 4 * int(self._stride) + 8
        page = max(1, self.memory // (A_PAGE * a_state)) if self.memory else 0
        return StateQueue(self._stride, page)

    def limit(self, memory: int) -> None:
        """Let states take so many bytes from now on."""
        self.memory = memory
        self.visited.at_most = memory // A_THIRD

    def trouble(self) -> str:
        """Say why states could not be written to files, if so."""
        return self.visited.trouble or self.frontier.trouble or self.upcoming.trouble

    def close(self) -> None:
        """Let go of what the search has in files."""
        self.frontier.close()
        self.upcoming.close()
        self.visited.close()

    def expand(self, at_most: int) -> bool:
        """Expand so many states of this level, and tell whether any is left."""
        frontier = self.frontier
        left = min(at_most, len(frontier))
        while left:
            self._fingerprint = int(frontier.take(self._now))
            self._canonical = self._lowest(self._now, self._fingerprint)
            self._load(self._now)
            self._expand()
            left -= 1
        return len(frontier) > 0

    def next_level(self) -> int:
        """Go on to the states that were found, and say how many there are."""
        self.level += 1
        self.frontier.close()
        self.frontier = self.upcoming
        self.upcoming = self.queue()
        return len(self.frontier)

    def take_in(self, state: vec[i32], fingerprint: int, parent: int) -> None:
        """Take in a state of the next level that another search found and this one owns."""
        canonical = self._lowest(state, fingerprint)
        if self.is_new(canonical, parent):
            self.upcoming.append(state, fingerprint)
            self.check(state, canonical, self.level + 1)

    def is_new(self, canonical: i64, parent: i64) -> bool:
        """Add a state of the next level that another search found, and tell whether it is new."""
        known = self.visited.add(canonical, parent, self.level + 1)
        if known != NONE and known <= self.level:
            self.strays += 1
        return known == NONE

    # Single states, for random walks and for paths.

    def possible_from(self, state: list[int]) -> list[Transition]:
        """List every transition out of a state; where events lead to is not computed."""
        self._only_list = True
        possible = self.transitions_from(state)
        self._only_list = False
        return possible

    def followed(self, state: list[int], transition: Transition) -> Transition:
        """Return a transition that is possible in a state, with the state it leads to."""
        if transition.after:
            return transition
        collected: list[Transition] = []
        self._collected = collected
        self._load(vec[i32](state))
        self._happen(transition.actor, transition.event, transition.rest)
        self._collected = None
        return collected[0]

    def transitions_from(self, state: list[int]) -> list[Transition]:
        """List every transition out of a state."""
        collected: list[Transition] = []
        self._collected = collected
        self._load(vec[i32](state))
        self._fingerprint = 0
        self._take_all(ALL)
        self._collected = None
        return collected

    def fingerprint(self, state: list[int]) -> int:
        fingerprint = self.budgets.fingerprints[state[2 * self.actors]]
        for actor in range(self.actors):
            fingerprint ^= self.machine.locals[state[2 * actor]].fingerprint
            fingerprint ^= self.in_flight.fingerprints[state[2 * actor + 1]]
        return fingerprint

    def canonical(self, state: list[int]) -> int:
        """The fingerprint by which a state is known to have been visited."""
        return self._lowest(vec[i32](state), self.fingerprint(state))

    def is_over(self, state: list[int], transitions: list[Transition]) -> bool:
        """Tell whether a run can end in a state with these transitions: nothing need happen."""
        if any(transition.sure for transition in transitions):
            return False
        return not transitions or not self._waits(vec[i32](state))

    def broken(self, state: list[int], terminal: bool) -> list[str]:
        """The properties that a state breaks."""
        now = vec[i32](state)
        broken = self._safety(now)
        if terminal:
            broken = broken + self._completion(now)
        return broken

    def histories(self, now: vec[i32]) -> Histories:
        machine = self.machine
        return [machine.locals[int(now[2 * actor])].history for actor in range(self.actors)]

    # Transitions.

    def _load(self, now: vec[i32]) -> None:
        self._now = now
        left = self.budgets.left[int(now[2 * self.actors])]
        self._stock_left = sum(left) > 0
        self._faults_possible = self._stock_left or self.notices or self._by_name

    def _expand(self) -> None:
        self._sure = 0
        self._unsure = 0
        self._ahead = 0
        chosen = ALL
        # All processes draw on one stock of faults, so transitions with faults do not commute.
        if self.reduction is not None and self._reducible():
            chosen = self.reduction.choose(self._now)
        self._take_all(chosen)
        if chosen != ALL and (not self._sure or (not self._ahead and self.sharing is None)):
            # Faults, or a loop, could put off the other processes for ever: see docs/explorer.md.
            self.loops += 1
            self._sure = 0
            self._unsure = 0
            self._take_all(ALL)
        if not self._sure and (not self._unsure or not self._waits(self._now)):
            self._end()

    def _waits(self, now: vec[i32]) -> bool:
        """Tell whether a timer is set: only the bound on timers keeps the run from going on."""
        return any(self.machine.locals[int(now[2 * actor])].timers for actor in range(self.actors))

    def _reducible(self) -> bool:
        """Whether no fault is left but those that one process does not leave less of to others."""
        return not self._stock_left and (self._by_name or not self.notices)

    def _take_all(self, chosen: int) -> None:
        machine = self.machine
        now = self._now
        for actor in range(self.actors):
            if not chosen >> actor & 1:
                continue
            local = machine.locals[int(now[2 * actor])]
            pending = int(now[2 * actor + 1])
            for event in local.own:
                self._happen(actor, event, pending)
            if not local.idle:
                heads = self.in_flight.heads(pending)
                place = 0
                while place < len(heads):
                    self._happen(actor, heads[place], heads[place + 1])
                    place += 2
        if self._faults_possible:
            self._go_wrong(chosen)

    def _happen(self, actor: int, event: int, rest: int) -> None:
        machine = self.machine
        in_flight = self.in_flight
        now = self._now
        after = self._after
        budget = now[2 * self.actors]
        sure = True
        if self._faults_possible or machine.timers_seen:
            kind = machine.events[event].kind
            if kind >= TIMER and kind != CHOICE and kind != TOLD and kind != TRUST:
                what = STOCKS[kind]
                if kind == TIMER:
                    free = machine.events[event].number > 0
                elif kind == SUSPECT:
                    sure = machine.locals[int(now[2 * machine.events[event].source])].crashed
                    free = sure or machine.suspicions_by_name
                else:
                    free = kind == CRASH and machine.crashes_by_name
                    sure = False
                if not free:
                    if not self.budgets.left[int(budget)][what]:
                        return
                    budget = i32(self.budgets.less(int(budget), what))
        if self._only_list and self._collected is not None:
            self._collected.append(Transition(EVENT, actor, event, rest, sure, []))
            return
        may_restart = self._faults_possible and self.budgets.left[int(budget)][RESTARTS] > 0
        part: i64 = 0
        while part < self._stride:
            after[part] = now[part]
            part += 1
        before = int(now[2 * actor])
        step = machine.step(before, event)
        fingerprint = self._fingerprint ^ machine.locals[before].fingerprint
        fingerprint ^= machine.locals[step.after].fingerprint
        pending = int(now[2 * actor + 1])
        fingerprint ^= in_flight.fingerprints[pending] ^ in_flight.fingerprints[rest]
        after[2 * actor] = i32(step.after)
        after[2 * actor + 1] = i32(rest)
        for output in step.outputs:
            target = machine.events[output].process
            if machine.locals[int(after[2 * target])].crashed and not may_restart:
                continue
            there = int(after[2 * target + 1])
            longer = in_flight.append(there, output)
            fingerprint ^= in_flight.fingerprints[there] ^ in_flight.fingerprints[longer]
            after[2 * target + 1] = i32(longer)
        if budget != now[2 * self.actors]:
            fingerprint ^= self.budgets.fingerprints[int(now[2 * self.actors])]
            fingerprint ^= self.budgets.fingerprints[int(budget)]
            after[2 * self.actors] = budget
        self._arrive(EVENT, actor, event, fingerprint, step.seen, sure)

    def _arrive(
        self, kind: int, actor: int, event: int, fingerprint: int, look: bool, sure: bool
    ) -> None:
        """Count a transition to the state in `after`, which may be a new one."""
        after = self._after
        if sure:
            self._sure += 1
        else:
            self._unsure += 1
        if self._collected is not None:
            row = [int(after[part]) for part in range(int(self._stride))]
            self._collected.append(Transition(kind, actor, event, 0, sure, row))
            return
        self.transitions += 1
        canonical = fingerprint if self.symmetry is None else self._lowest(after, fingerprint)
        sharing = self.sharing
        if sharing is not None and sharing.ownership.is_told_by(actor):
            owner = sharing.ownership.owner(after)
            if owner != sharing.me:
                self._ahead += 1
                sharing.post(owner, after, canonical, fingerprint, self._canonical)
                return
        known = self.visited.add(canonical, self._canonical, self.level + 1)
        if known == NONE:
            self._ahead += 1
            self.upcoming.append(after, fingerprint)
            if look:
                self.check(after, canonical, self.level + 1)
        elif known > self.level:
            self._ahead += 1
        else:
            self.strays += 1

    def _lowest(self, state: vec[i32], fingerprint: int) -> int:
        if self.symmetry is None:
            return fingerprint
        rest = self.budgets.fingerprints[int(state[2 * self.actors])]
        return self.symmetry.lowest(state, self.actors, fingerprint, rest)

    # Properties.

    def check(self, state: vec[i32], canonical: int, level: int) -> None:
        """Note which properties a state breaks."""
        for name in self._safety(state):
            self._report(name, canonical, level)

    def _report(self, name: str, canonical: int, level: int) -> None:
        if name not in self.found:
            self.found.add(name)
            self.findings.append(StateViolation(name, canonical, level))

    def _safety(self, state: vec[i32]) -> list[str]:
        machine = self.machine
        broken: list[str] = []
        orders: list[int] = []
        for actor in range(self.actors):
            local = machine.locals[int(state[2 * actor])]
            orders.append(local.order)
            if local.problem:
                name = INTEGRITY if local.problem.startswith(INTEGRITY) else CONDUCT
                if name not in broken and name in self.checks.properties:
                    broken.append(name)
        return broken + self.checks.safety(tuple(orders), self.histories(state))

    def _completion(self, state: vec[i32]) -> list[str]:
        machine = self.machine
        # Nothing is expected of a process that a view leaves out, as of one that has crashed.
        locals_ = [machine.locals[int(state[2 * actor])] for actor in range(self.actors)]
        gone = [local.crashed or actor in machine.left_out for actor, local in enumerate(locals_)]
        faulty = [away or local.restarted for away, local in zip(gone, locals_, strict=True)]
        return self.checks.completion(self.histories(state), gone, faulty)

    def _end(self) -> None:
        """Note that nothing need happen any more in this state."""
        self.terminals += 1
        machine = self.machine
        orders = [machine.locals[int(self._now[2 * actor])].order for actor in range(self.actors)]
        self.terminal_orders.add(tuple(orders))
        broken = self._completion(self._now)
        if not broken:
            self.complete += 1
        for name in broken:
            self._report(name, self._canonical, self.level)

    # What the world does within the bounds.

    def _go_wrong(self, chosen: int) -> None:
        machine = self.machine
        now = self._now
        left = self.budgets.left[int(now[2 * self.actors])]
        members = machine.size
        may_crash = machine.crashes_by_name or left[CRASHES] > 0
        for actor in range(members):
            local = machine.locals[int(now[2 * actor])]
            pending = int(now[2 * actor + 1])
            if local.crashed:
                if left[RESTARTS]:
                    for packets in (KEPT, LOST):
                        event = machine.event(Event(RESTART, actor, actor, None, 0, "", packets))
                        self._happen(actor, event, pending if packets == KEPT else 0)
                continue
            if not chosen >> actor & 1:
                continue
            if may_crash and not local.problem and machine.may_crash(actor):
                crash = machine.event(Event(CRASH, actor, actor, None, 0, "", 0))
                self._happen(actor, crash, pending if left[RESTARTS] else 0)
                if left[RESTARTS]:
                    self._crash_within(actor, local, pending)
            if self.notices and not local.idle:
                for suspect in range(members):
                    if suspect == actor or suspect in local.suspects:
                        continue
                    crashed = machine.locals[int(now[2 * suspect])].crashed
                    if not crashed and not machine.may_suspect(actor, suspect):
                        continue
                    event = machine.event(Event(SUSPECT, actor, suspect, None, 0, "", 0))
                    self._happen(actor, event, pending)
                for suspect in local.suspects:
                    if machine.locals[int(now[2 * suspect])].restarted:
                        event = machine.event(Event(TRUST, actor, suspect, None, 0, "", 0))
                        self._happen(actor, event, pending)
            if left[LOSSES] or left[DUPLICATES]:
                self._tamper(actor, pending, left)

    def _crash_within(self, actor: int, local: Local, pending: int) -> None:
        """Let a process crash in the middle of what it may do next, where it stores something."""
        machine = self.machine
        number = int(self._now[2 * actor])
        for event in local.own:
            for cut in machine.step(number, event).cuts:
                self._happen(actor, cut, pending)
        if not local.idle:
            heads = self.in_flight.heads(pending)
            for place in range(0, len(heads), 2):
                for cut in machine.step(number, heads[place]).cuts:
                    self._happen(actor, cut, heads[place + 1])

    def _tamper(self, actor: int, pending: int, left: tuple[int, ...]) -> None:
        heads = self.in_flight.heads(pending)
        for place in range(0, len(heads), 2):
            event = heads[place]
            if left[LOSSES]:
                self._replace(actor, pending, heads[place + 1], LOSS, event, LOSSES)
            if left[DUPLICATES]:
                contents = self.in_flight.contents[pending]
                first = contents.index(event)
                twice = self.in_flight.with_contents((*contents[:first], event, *contents[first:]))
                self._replace(actor, pending, twice, DUPLICATION, event, DUPLICATES)

    def _replace(
        self, actor: int, pending: int, other: int, kind: int, event: int, what: int
    ) -> None:
        now = self._now
        after = self._after
        for part in range(int(self._stride)):
            after[part] = now[part]
        budget = int(now[2 * self.actors])
        less = self.budgets.less(budget, what)
        after[2 * actor + 1] = i32(other)
        after[2 * self.actors] = i32(less)
        fingerprints = self.in_flight.fingerprints
        fingerprint = self._fingerprint ^ fingerprints[pending] ^ fingerprints[other]
        fingerprint ^= self.budgets.fingerprints[budget] ^ self.budgets.fingerprints[less]
        self._arrive(kind, actor, event, fingerprint, look=False, sure=False)
