"""A protocol between groups of one replica, driven in lockstep with the protocol that they run.

Every step of the one has to be a sequence of steps of the other: what the adapter hands its inner
layer must be in flight there, first in its channel. After each step both have delivered the
same, and the inner layer is in the state of the plain one.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, permutations
from math import factorial
from random import Random

from flexgroup.core.message import MessageId, Packet, origin_of
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.core.state import state_names, write_canonically
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.protocols.log import Append
from flexgroup.protocols.parts.group_channels import Transfer
from flexgroup.protocols.replicated import Replicated, Submit
from flexgroup.worlds.explorer.all_systems import systems
from flexgroup.worlds.explorer.comparison import acyclic_orders, most_urgent
from flexgroup.worlds.explorer.random_walks import EvenChances, Priorities
from flexgroup.worlds.explorer.result import Orders
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.search import EVENT, Transition
from flexgroup.worlds.explorer.search_setup import SearchOptions, new_search
from flexgroup.worlds.explorer.workers import orders_of

State = list[int]
Choose = Callable[[list[Transition]], Transition]


@dataclass(frozen=True)
class Both:
    """A state of the replicated form, and that of the plain one which corresponds to it."""

    replicated: State
    plain: State
    submitted: frozenset[tuple[int, MessageId]]
    """What origins submitted, and to whom, as far as the inner layers have got it."""


class Lockstep:
    """Two searches of one system, of which only single steps are made."""

    def __init__(self, replicated: StackPlan, plain: StackPlan, scope: Scope) -> None:
        everything = SearchOptions(reduce=False, symmetry=False)
        alone = replace(scope, replicas=replicas_of_sizes([1] * scope.processes))
        self.replicated = new_search(replicated, alone, everything)
        self.plain = new_search(plain, scope, everything)
        self.processes = scope.processes
        self.first = Both(self.replicated.first, self.plain.first, frozenset())
        self._same: set[tuple[int, int]] = set()
        """The states of a process, by their numbers, that were compared."""

    def follow(self, both: Both, transition: Transition) -> Both:
        """Take a step of the replicated form, and the steps of the plain one that it stands for."""
        process = transition.actor
        event = self.replicated.machine.events[transition.event]
        assert isinstance(event.packet, Append)
        plain = both.plain
        submitted = set(both.submitted)
        for source, packet in inputs(event.source, event.packet, process, submitted):
            plain = self._taken(plain, source, process, packet)
            # The adapter hands the inner layer at once what it sends to itself.
            while (own := self._first_of(plain, process, process)) is not None:
                plain = self.plain.followed(plain, own).after
        after = self.replicated.followed(both.replicated, transition).after
        self._compare(after[2 * process], plain[2 * process])
        return Both(after, plain, frozenset(submitted))

    def _taken(self, state: State, source: int, process: int, packet: Packet) -> State:
        arriving = self._first_of(state, source, process)
        assert arriving is not None, f"nothing is in flight from {source} to {process}"
        first = self.plain.machine.events[arriving.event].packet
        assert first == packet, f"{first} would arrive before {packet}"
        return self.plain.followed(state, arriving).after

    def _first_of(self, state: State, source: int, process: int) -> Transition | None:
        """The arrival that is possible from one process at another."""
        heads = self.plain.in_flight.heads(state[2 * process + 1])
        for event, rest in zip(heads[::2], heads[1::2], strict=True):
            if self.plain.machine.events[event].source == source:
                return Transition(EVENT, process, event, rest, True, [])
        return None

    def _compare(self, replicated: int, plain: int) -> None:
        if (replicated, plain) in self._same:
            return
        ours = self.replicated.machine.locals[replicated]
        theirs = self.plain.machine.locals[plain]
        assert not ours.problem, ours.problem
        assert not theirs.problem, theirs.problem
        assert ours.history == theirs.history
        adapter = ours.host.stack.layers[-1]
        assert isinstance(adapter, Replicated)
        assert adapter.inner is not None
        (layer,) = theirs.host.stack.layers
        for name in state_names(layer):
            assert canonical(getattr(adapter.inner, name)) == canonical(getattr(layer, name)), name
        self._same.add((replicated, plain))

    def check_end(self, both: Both) -> None:
        """Where the one has ended so has the other, and everything is delivered."""
        assert not self.plain.possible_from(both.plain)
        assert not self.replicated.broken(both.replicated, terminal=True)
        assert not self.plain.broken(both.plain, terminal=True)

    def orders(self, both: Both) -> Orders:
        """What each process has delivered, in order, in both forms."""
        machine = self.plain.machine
        return orders_of(self.plain, [machine.locals[local].order for local in both.plain[:-1:2]])

    def walk(self, choose: Choose) -> tuple[Both, int]:
        """One schedule to its end, and how many steps it has."""
        both = self.first
        steps = 0
        while transitions := self.replicated.possible_from(both.replicated):
            both = self.follow(both, choose(transitions))
            steps += 1
        self.check_end(both)
        return both, steps

    def walks(self, random: Random, count: int) -> int:
        """So many schedules: every other with priorities, which let packets be overtaken by many;
        return how many steps there were."""
        total = 0
        for number in range(count):
            if number % 2:
                choose = Priorities(self.replicated, random, depth=3, steps=64).choose
            else:
                choose = EvenChances(random, steps=64).choose
            total += self.walk(choose)[1]
        return total

    def exhaust(self) -> int:
        """Follow every step from every state, and return how many states there are."""
        seen = {self.replicated.fingerprint(self.first.replicated)}
        waiting = [self.first]
        while waiting:
            both = waiting.pop()
            transitions = self.replicated.possible_from(both.replicated)
            if not transitions:
                self.check_end(both)
            for transition in transitions:
                after = self.follow(both, transition)
                fingerprint = self.replicated.fingerprint(after.replicated)
                if fingerprint not in seen:
                    seen.add(fingerprint)
                    waiting.append(after)
        return len(seen)


def inputs(
    source: int, packet: Append, process: int, submitted: set[tuple[int, MessageId]]
) -> Iterator[tuple[int, Packet]]:
    """What the inner layer must get when this arrives, and from whom: see "How it works".

    What an origin submits comes from there and, passed on, from other groups: one copy counts.
    """
    body = packet.m.payload
    assert isinstance(body, Submit | Transfer)
    for m in (body.m,) if isinstance(body, Submit) else body.messages:
        assert isinstance(m.payload, Packet)
        if isinstance(body, Transfer) and len(m.destinations) == 1:
            yield source, m.payload
        elif (process, m.id) not in submitted:
            submitted.add((process, m.id))
            yield origin_of(m.id), m.payload


def canonical(value: object) -> bytes:
    out = bytearray()
    write_canonically(out, value)
    return bytes(out)


def every_order(lockstep: Lockstep, scope: Scope) -> frozenset[Orders]:
    """The orders of the schedules in which each message is delivered before another is heard of."""
    found: set[Orders] = set()
    for origins in permutations([cast.origin for cast in scope.casts]):
        next_one = partial(most_urgent, lockstep.replicated, origins)
        found.add(lockstep.orders(lockstep.walk(next_one)[0]))
    return frozenset(found)


def main() -> None:
    """Drive all systems of a size, and say after each how far it has come."""
    parser = ArgumentParser(description=main.__doc__)
    parser.add_argument("replicated")
    parser.add_argument("plain")
    parser.add_argument("size", help="4x4 for four groups and four messages")
    parser.add_argument("--walks", type=int, default=20, help="random schedules of each system")
    parser.add_argument("--skip", type=int, default=0, help="systems that were driven before")
    parser.add_argument("--every", type=int, default=1, help="drive only every so manieth system")
    options = parser.parse_args()
    plans = parse_stack(options.replicated), parse_stack(options.plain)
    processes, messages = map(int, options.size.split("x"))
    chosen = islice(systems(processes, messages), options.skip, None, options.every)
    schedules = 0
    for driven, scope in enumerate(chosen, start=1):
        lockstep = Lockstep(*plans, scope)
        assert every_order(lockstep, scope) == acyclic_orders(scope), scope.described()
        lockstep.walks(Random(scope.described()), options.walks)
        schedules += factorial(len(scope.casts)) + options.walks
        print(f"{driven:,} systems, {schedules:,} schedules: {scope.described()}", flush=True)


if __name__ == "__main__":
    main()
