"""What searches that share the states tell each other: the states found, and what names them.

A state is posted in the numbers of who found it. Ahead of the states goes what was added to the
sender's tables, from which the receiver learns what those numbers are in its own.
"""

from __future__ import annotations

from typing import NamedTuple, final

from librt.strings import read_i32_le, read_i64_le
from librt.vecs import append, vec
from mypy_extensions import i32, i64

from flexgroup.worlds.explorer.ownership import Ownership, Sharing
from flexgroup.worlds.explorer.packed_states import TableExchange, TableUpdates
from flexgroup.worlds.explorer.search import Search


class NumberedUpdates(NamedTuple):
    """What a search has added to its tables, in the order of its numbers."""

    tables: TableUpdates
    locals: list[int]
    """The fingerprints of states of processes."""


@final
class Numbers:
    """The own numbers for those of another search: states of processes, in flight, budgets."""

    def __init__(self, search: Search, alike: bool) -> None:
        self._search = search
        self.locals = vec[i32]()
        self.in_flight = vec[i32]()
        self.budgets = vec[i32]()
        if alike:
            self.locals = _first_numbers(len(search.machine.locals))
            self.in_flight = _first_numbers(len(search.in_flight.contents))
            self.budgets = _first_numbers(len(search.budgets.left))

    def learn(self, updates: NumberedUpdates) -> None:
        """Look up what the other search has added, which is in the own tables by now."""
        search = self._search
        machine = search.machine
        for fingerprint in updates.locals:
            self.locals = append(self.locals, i32(machine.local_of(fingerprint)))
        for contents in updates.tables.in_flight:
            own = tuple([machine.event_of(event) for event in contents])
            self.in_flight = append(self.in_flight, i32(search.in_flight.with_contents(own)))
        for left in updates.tables.budgets:
            self.budgets = append(self.budgets, i32(search.budgets.number(left)))


@final
class StateExchange:
    """One search's part in exchanging states."""

    def __init__(self, search: Search, alike: bool) -> None:
        """Begin with tables that are `alike`, number by number, or have nothing in common."""
        sharing = search.sharing
        assert sharing is not None
        self._search = search
        self._sharing = sharing
        self._tables = TableExchange(search)
        self._locals = 0
        if alike:
            self._tables.skip()
            self._locals = len(search.machine.locals)
        self._numbers = [Numbers(search, alike) for _ in range(sharing.ownership.workers)]

    def give(self) -> tuple[NumberedUpdates, list[bytes]]:
        """Return what is new in the tables, and the states found for each worker."""
        search = self._search
        if search.symmetry is not None:
            search.symmetry.verify()
        states = self._sharing.collect()
        added = [local.fingerprint for local in search.machine.locals[self._locals :]]
        self._locals += len(added)
        return NumberedUpdates(self._tables.collect(), added), states

    def take(self, updates: list[NumberedUpdates], states: list[bytes]) -> None:
        """Take over what each worker has computed, and the states that it found for this one."""
        for sender, update in enumerate(updates):
            if sender != self._sharing.me:
                self._tables.apply(update.tables)
        # Steps that others have told are known to all; but the numbers go on from here.
        self._tables.skip_steps()
        for sender, update in enumerate(updates):
            if sender != self._sharing.me:
                self._numbers[sender].learn(update)
                self._take_states(self._numbers[sender], states[sender])

    def _take_states(self, numbers: Numbers, data: bytes) -> None:
        search = self._search
        symmetric = self._sharing.symmetric
        head: i64 = 24 if symmetric else 16
        stride: i64 = 2 * search.actors + 1
        row = vec[i32]([0] * int(stride))
        own_locals, in_flight = numbers.locals, numbers.in_flight
        at: i64 = 0
        while at < i64(len(data)):
            canonical = read_i64_le(data, at)
            if search.is_new(canonical, read_i64_le(data, at + 8)):
                fingerprint = read_i64_le(data, at + 16) if symmetric else canonical
                part: i64 = 0
                offset = at + head
                while part < stride - 1:
                    row[part] = own_locals[i64(read_i32_le(data, offset))]
                    row[part + 1] = in_flight[i64(read_i32_le(data, offset + 4))]
                    part += 2
                    offset += 8
                row[part] = numbers.budgets[i64(read_i32_le(data, offset))]
                search.upcoming.append(row, fingerprint)
                search.check(row, int(canonical), search.level + 1)
            at += head + 4 * stride


def most_even(search: Search, workers: int) -> list[int]:
    """Return the processes whose states divide the frontier among workers most evenly.

    One process is better than two, since the moves of all others stay with the worker.
    """
    actors = range(search.actors)
    singles = [[one] for one in actors]
    pairs = [[one, other] for one in actors for other in range(one)]
    ways = [Ownership(search.machine, search.symmetry, way, workers) for way in singles + pairs]
    shares = [[0] * workers for _ in ways]
    looked_at = search.queue()
    row = vec[i32]([0] * (2 * search.actors + 1))
    while len(search.frontier):
        looked_at.append(row, search.frontier.take(row))
        for way, share in zip(ways, shares, strict=True):
            share[int(way.owner(row))] += 1
    search.frontier.close()
    search.frontier = looked_at
    largest = [max(share) for share in shares]
    single = min(largest[: len(singles)])
    even = 4 * workers * single <= 5 * len(looked_at)
    return ways[largest.index(single if even else min(largest))].actors


def share(search: Search, actors: list[int], workers: int, me: int) -> None:
    """Make a search one of several, which divide the states by those of some processes."""
    ownership = Ownership(search.machine, search.symmetry, actors, workers)
    symmetric = search.symmetry is not None
    search.sharing = Sharing(ownership, me, 2 * search.actors + 1, symmetric)
    search.limit(search.memory // workers)


def join(search: Search, actors: list[int], workers: int, me: int) -> None:
    """Make the copy of a search one of several: leave to the others what they go on with.

    What was visited until now is known to all, and counts once.
    """
    share(search, actors, workers, me)
    if me:
        search.inherited = search.visited.count
        search.transitions = search.terminals = search.complete = search.loops = search.strays = 0
        search.terminal_orders.clear()
    sharing = search.sharing
    assert sharing is not None
    kept = search.queue()
    row = vec[i32]([0] * (2 * search.actors + 1))
    while len(search.frontier):
        fingerprint = search.frontier.take(row)
        if sharing.ownership.owner(row) == me:
            kept.append(row, fingerprint)
    search.frontier.close()
    search.frontier = kept


def _first_numbers(count: int) -> vec[i32]:
    numbers = vec[i32](capacity=count)
    for number in range(count):
        numbers = append(numbers, i32(number))
    return numbers
