"""The search: all reachable states, breadth first, one level after the other.

A state is a row of numbers: for each process that is followed the number of its state and of
its inbox, and last the number of what may still go wrong. Its fingerprint is the exclusive or
of the fingerprints of the parts, so that a move costs only the parts that it changes.
"""

from __future__ import annotations

from typing import final

from librt.vecs import append, vec
from mypy_extensions import i32, i64

from flexgroup.worlds.explorer.inboxes import Inboxes
from flexgroup.worlds.explorer.judge import CONDUCT, INTEGRITY, Histories, Judge
from flexgroup.worlds.explorer.machine import CHOICE, CRASH, SUSPECT, TIMER, Event, Machine
from flexgroup.worlds.explorer.moves import (
    CRASHES,
    DUPLICATES,
    HAPPENS,
    IS_DOUBLED,
    IS_LOST,
    LOSSES,
    SUSPICIONS,
    TIMERS,
    Budgets,
    Finding,
    Move,
    Parcel,
)
from flexgroup.worlds.explorer.reduction import ALL, Reduction
from flexgroup.worlds.explorer.symmetry import Symmetry
from flexgroup.worlds.explorer.visited import NONE, Visited


@final
class Search:
    """The frontier, what was visited, and what was found."""

    def __init__(
        self,
        machine: Machine,
        inboxes: Inboxes,
        budgets: Budgets,
        judge: Judge,
        actors: int,
        first: list[int],
        reduction: Reduction | None,
        symmetry: Symmetry | None,
        notices: bool,
        workers: int = 1,
        me: int = 0,
    ) -> None:
        self.machine = machine
        self.inboxes = inboxes
        self.budgets = budgets
        self.judge = judge
        self.actors = actors
        self.reduction = reduction
        self.symmetry = symmetry
        self.notices = notices
        """Some layer listens to suspicions."""
        self.workers = workers
        self.me = me
        self.visited = Visited()
        self.level = 0
        self.transitions = 0
        self.terminals = 0
        self.complete = 0
        """Terminal states in which everything was delivered."""
        self.loops = 0
        """Reduced states that led nowhere new, and were expanded fully."""
        self.strays = 0
        """States that came back from another worker's search of an earlier level."""
        self.findings: list[Finding] = []
        self.found: set[str] = set()
        self.terminal_orders: set[tuple[int, ...]] = set()
        self.position: i64 = 0
        self.states = vec[i32]()
        self.marks = vec[i64]()
        self.next_states = vec[i32]()
        self.next_marks = vec[i64]()
        self.parcels = [Parcel() for _ in range(workers)]
        self._stride: i64 = 2 * actors + 1
        self._now = vec[i32](first)
        self._after = vec[i32](first)
        self._mark = 0
        self._canonical = 0
        self._moves = 0
        self._ahead = 0
        self._collected: list[Move] | None = None
        self._faults_possible = False
        self.first = first
        self._load(self._now)
        self._first(first)

    def again(self) -> Search:
        """The same search at its beginning, with the tables that this one has filled."""
        return Search(
            self.machine, self.inboxes, self.budgets, self.judge, self.actors, self.first,
            self.reduction, self.symmetry, self.notices, self.workers, self.me,
        )  # fmt: skip

    def _first(self, first: list[int]) -> None:
        mark = self.fingerprint(first)
        canonical = self._lowest(self._now, mark)
        if canonical % self.workers == self.me:
            self.visited.add(canonical, NONE, 0)
            self._append(self._now, mark)
            self._judge(self._now, canonical, 0)
        self.states, self.next_states = self.next_states, self.states
        self.marks, self.next_marks = self.next_marks, self.marks

    # The search.

    def expand(self, at_most: int) -> bool:
        """Expand so many states of this level; False if none is left."""
        end = self.position + at_most
        if end > len(self.marks):
            end = len(self.marks)
        while self.position < end:
            self._load_from(self.position)
            self._expand()
            self.position += 1
        return self.position < len(self.marks)

    def next_level(self) -> int:
        """Go on to the states that were found; how many there are."""
        self.level += 1
        self.position = 0
        self.states = self.next_states
        self.marks = self.next_marks
        self.next_states = vec[i32]()
        self.next_marks = vec[i64]()
        return len(self.marks)

    def take_in(self, state: vec[i32], mark: int, parent: int) -> None:
        """A state of the next level that another worker found, and that this one owns."""
        level = self.level + 1
        canonical = self._lowest(state, mark)
        known = self.visited.add(canonical, parent, level)
        if known == NONE:
            self._append(state, mark)
            self._judge(state, canonical, level)
        elif known < level:
            self.strays += 1

    def restore(self, states: list[list[int]], position: int, upcoming: list[list[int]]) -> None:
        """Go on where a search was interrupted; what it had visited is added by the caller."""
        self.states, self.marks = vec[i32](), vec[i64]()
        self.next_states, self.next_marks = vec[i32](), vec[i64]()
        for state in states:
            self._append(vec[i32](state), self.fingerprint(state))
        self.states, self.marks = self.next_states, self.next_marks
        self.next_states, self.next_marks = vec[i32](), vec[i64]()
        for state in upcoming:
            self._append(vec[i32](state), self.fingerprint(state))
        self.position = position

    # Single states, for walks and for paths.

    def moves(self, state: list[int]) -> list[Move]:
        """Every move out of a state."""
        collected: list[Move] = []
        self._collected = collected
        self._load(vec[i32](state))
        self._mark = 0
        self._move_all(ALL)
        self._collected = None
        return collected

    def fingerprint(self, state: list[int]) -> int:
        mark = self.budgets.fingerprints[state[2 * self.actors]]
        for actor in range(self.actors):
            mark ^= self.machine.locals[state[2 * actor]].fingerprint
            mark ^= self.inboxes.fingerprints[state[2 * actor + 1]]
        return mark

    def canonical(self, state: list[int]) -> int:
        """The fingerprint by which a state is known to have been visited."""
        return self._lowest(vec[i32](state), self.fingerprint(state))

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

    # The inside.

    def _load(self, now: vec[i32]) -> None:
        self._now = now
        left = self.budgets.left[int(now[2 * self.actors])]
        self._faults_possible = sum(left) > 0 or self.notices

    def _load_from(self, place: i64) -> None:
        offset = place * self._stride
        part: i64 = 0
        while part < self._stride:
            self._now[part] = self.states[offset + part]
            part += 1
        self._mark = int(self.marks[place])
        self._canonical = self._lowest(self._now, self._mark)
        left = self.budgets.left[int(self._now[2 * self.actors])]
        self._faults_possible = sum(left) > 0 or self.notices

    def _expand(self) -> None:
        self._moves = 0
        self._ahead = 0
        chosen = ALL
        # What faults may happen is one stock for all: moves that draw on it do not commute.
        if self.reduction is not None and not self._faults_possible:
            chosen = self.reduction.choose(self._now)
        self._move_all(chosen)
        if chosen != ALL and not self._ahead and (self.workers == 1 or not self._moves):
            # A loop could put off the other processes for ever: see docs/explorer.md.
            self.loops += 1
            self._moves = 0
            self._move_all(ALL)
        if not self._moves:
            self._end()

    def _move_all(self, chosen: int) -> None:
        machine = self.machine
        now = self._now
        for actor in range(self.actors):
            if chosen != ALL and actor != chosen:
                continue
            local = machine.locals[int(now[2 * actor])]
            inbox = int(now[2 * actor + 1])
            for event in local.own:
                self._happen(actor, event, inbox)
            if not local.idle:
                heads = self.inboxes.heads(inbox)
                place = 0
                while place < len(heads):
                    self._happen(actor, heads[place], heads[place + 1])
                    place += 2
        if self._faults_possible:
            self._go_wrong()

    def _happen(self, actor: int, event: int, rest: int) -> None:
        machine = self.machine
        inboxes = self.inboxes
        now = self._now
        after = self._after
        budget = now[2 * self.actors]
        if self._faults_possible or machine.timers_seen:
            kind = machine.events[event].kind
            if kind >= TIMER and kind != CHOICE:
                left = self.budgets.left[int(budget)]
                what = TIMERS if kind == TIMER else CRASHES if kind == CRASH else SUSPICIONS
                suspect = machine.events[event].source
                free = kind == SUSPECT and machine.locals[int(now[2 * suspect])].crashed
                free = free or (kind == TIMER and machine.events[event].number > 0)
                if not free:
                    if not left[what]:
                        return
                    budget = i32(self.budgets.less(int(budget), what))
        part: i64 = 0
        while part < self._stride:
            after[part] = now[part]
            part += 1
        before = int(now[2 * actor])
        step = machine.step(before, event)
        mark = self._mark ^ machine.locals[before].fingerprint
        mark ^= machine.locals[step.after].fingerprint
        inbox = int(now[2 * actor + 1])
        mark ^= inboxes.fingerprints[inbox] ^ inboxes.fingerprints[rest]
        after[2 * actor] = i32(step.after)
        after[2 * actor + 1] = i32(rest)
        for output in step.outputs:
            target = machine.events[output].process
            if machine.locals[int(after[2 * target])].crashed:
                continue
            there = int(after[2 * target + 1])
            longer = inboxes.append(there, output)
            mark ^= inboxes.fingerprints[there] ^ inboxes.fingerprints[longer]
            after[2 * target + 1] = i32(longer)
        if budget != now[2 * self.actors]:
            mark ^= self.budgets.fingerprints[int(now[2 * self.actors])]
            mark ^= self.budgets.fingerprints[int(budget)]
            after[2 * self.actors] = budget
        self._arrive(HAPPENS, actor, event, mark, step.seen)

    def _arrive(self, kind: int, actor: int, event: int, mark: int, look: bool) -> None:
        """A move leads to the state in `after`."""
        after = self._after
        self._moves += 1
        if self._collected is not None:
            row = [int(after[part]) for part in range(int(self._stride))]
            self._collected.append(Move(kind, actor, event, row))
            return
        self.transitions += 1
        canonical = mark if self.symmetry is None else self._lowest(after, mark)
        if self.workers > 1 and canonical % self.workers != self.me:
            self._ahead += 1
            self._post(canonical, mark)
            return
        known = self.visited.add(canonical, self._canonical, self.level + 1)
        if known == NONE:
            self._ahead += 1
            self._append(after, mark)
            if look:
                self._judge(after, canonical, self.level + 1)
        elif known > self.level:
            self._ahead += 1
        elif self.workers > 1:
            self.strays += 1

    def _append(self, state: vec[i32], mark: i64) -> None:
        part: i64 = 0
        while part < self._stride:
            self.next_states = append(self.next_states, state[part])
            part += 1
        self.next_marks = append(self.next_marks, mark)

    def _post(self, canonical: int, mark: i64) -> None:
        parcel = self.parcels[canonical % self.workers]
        if parcel.sent.add(canonical, NONE, 0) != NONE:
            return
        part: i64 = 0
        while part < self._stride:
            parcel.states = append(parcel.states, self._after[part])
            part += 1
        parcel.marks = append(parcel.marks, mark)
        parcel.parents = append(parcel.parents, self._canonical)

    def _lowest(self, state: vec[i32], mark: int) -> int:
        if self.symmetry is None:
            return mark
        rest = self.budgets.fingerprints[int(state[2 * self.actors])]
        return self.symmetry.lowest(state, self.actors, mark, rest)

    # Judging.

    def _judge(self, state: vec[i32], canonical: int, level: int) -> None:
        for name in self._safety(state):
            self._report(name, canonical, level)

    def _report(self, name: str, canonical: int, level: int) -> None:
        if name not in self.found:
            self.found.add(name)
            self.findings.append(Finding(name, canonical, level))

    def _safety(self, state: vec[i32]) -> list[str]:
        machine = self.machine
        broken: list[str] = []
        orders: list[int] = []
        for actor in range(self.actors):
            local = machine.locals[int(state[2 * actor])]
            orders.append(local.order)
            if local.problem:
                name = INTEGRITY if local.problem.startswith(INTEGRITY) else CONDUCT
                if name not in broken and name in self.judge.properties:
                    broken.append(name)
        return broken + self.judge.safety(tuple(orders), self.histories(state))

    def _completion(self, state: vec[i32]) -> list[str]:
        crashed = [
            self.machine.locals[int(state[2 * actor])].crashed for actor in range(self.actors)
        ]
        return self.judge.completion(self.histories(state), crashed)

    def _end(self) -> None:
        """Nothing can happen any more in this state."""
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

    def _go_wrong(self) -> None:
        machine = self.machine
        now = self._now
        left = self.budgets.left[int(now[2 * self.actors])]
        members = machine.size
        for actor in range(members):
            local = machine.locals[int(now[2 * actor])]
            if local.crashed:
                continue
            inbox = int(now[2 * actor + 1])
            if left[CRASHES] and not local.problem:
                self._happen(actor, machine.event(Event(CRASH, actor, actor, None, 0, "", 0)), 0)
            if self.notices and not local.idle:
                for suspect in range(members):
                    if suspect == actor or suspect in local.suspects:
                        continue
                    event = machine.event(Event(SUSPECT, actor, suspect, None, 0, "", 0))
                    self._happen(actor, event, inbox)
            if left[LOSSES] or left[DUPLICATES]:
                self._tamper(actor, inbox, left)

    def _tamper(self, actor: int, inbox: int, left: tuple[int, ...]) -> None:
        heads = self.inboxes.heads(inbox)
        for place in range(0, len(heads), 2):
            event = heads[place]
            if left[LOSSES]:
                self._replace(actor, inbox, heads[place + 1], IS_LOST, event, LOSSES)
            if left[DUPLICATES]:
                contents = self.inboxes.contents[inbox]
                first = contents.index(event)
                twice = self.inboxes.with_contents((*contents[:first], event, *contents[first:]))
                self._replace(actor, inbox, twice, IS_DOUBLED, event, DUPLICATES)

    def _replace(
        self, actor: int, inbox: int, other: int, kind: int, event: int, what: int
    ) -> None:
        now = self._now
        after = self._after
        for part in range(int(self._stride)):
            after[part] = now[part]
        budget = int(now[2 * self.actors])
        less = self.budgets.less(budget, what)
        after[2 * actor + 1] = i32(other)
        after[2 * self.actors] = i32(less)
        mark = self._mark ^ self.inboxes.fingerprints[inbox] ^ self.inboxes.fingerprints[other]
        mark ^= self.budgets.fingerprints[budget] ^ self.budgets.fingerprints[less]
        self._arrive(kind, actor, event, mark, False)
