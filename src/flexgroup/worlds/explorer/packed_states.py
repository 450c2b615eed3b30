"""States packed into bytes that mean the same in every process: their parts by fingerprint.

The numbers of events, states of processes and packets in flight are private to the process that
searches. To hand a state to another process, or to a file, each part is named by its fingerprint,
and the table entries behind the fingerprints go ahead (`TableUpdates`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, final

from librt.strings import BytesWriter, read_i64_le, write_i64_le
from librt.vecs import append, vec
from mypy_extensions import i32, i64

from flexgroup.worlds.explorer.frontier import StateQueue
from flexgroup.worlds.explorer.search import Search
from flexgroup.worlds.explorer.spilled import NONE

_AT_A_TIME: Final = 1 << 15
"""How many states are packed into one piece."""


class TableUpdates(NamedTuple):
    """What a search has added to its tables."""

    steps: list[tuple[int, int]]
    in_flight: list[tuple[int, ...]]
    budgets: list[tuple[int, ...]]


@final
class TableExchange:
    """Keeps the tables of a search in step with those of others."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._steps = 0
        self._in_flight = 0
        self._budgets = 0

    def collect(self) -> TableUpdates:
        """Return what was added since the last call."""
        machine = self._search.machine
        in_flight = self._search.in_flight
        budgets = self._search.budgets
        updates = TableUpdates(
            machine.recipes[self._steps :],
            [
                tuple([machine.events[event].fingerprint for event in contents])
                for contents in in_flight.contents[self._in_flight :]
            ],
            budgets.left[self._budgets :],
        )
        self.skip()
        return updates

    def apply(self, updates: TableUpdates) -> None:
        """Do the steps that another search has computed, after which all that it names is known."""
        machine = self._search.machine
        for local, event in updates.steps:
            machine.step(machine.local_of(local), machine.event_of(event))
        for contents in updates.in_flight:
            self._search.in_flight.with_contents(
                tuple([machine.event_of(event) for event in contents])
            )
        for left in updates.budgets:
            self._search.budgets.number(left)

    def skip(self) -> None:
        """Leave out of the next collection what is in the tables now."""
        self.skip_steps()
        self._in_flight = len(self._search.in_flight.contents)
        self._budgets = len(self._search.budgets.left)

    def skip_steps(self) -> None:
        """Leave out of the next collection the steps that are known now."""
        self._steps = len(self._search.machine.recipes)


def pack_states(
    search: Search, states: vec[i32], fingerprints: vec[i64], parents: vec[i64]
) -> bytes:
    """Pack states with their fingerprints and, where there are any, those of their parents."""
    out = BytesWriter()
    machine = search.machine
    stride = 2 * search.actors + 1
    offset: i64 = 0
    for place in range(len(fingerprints)):
        for actor in range(search.actors):
            local = int(states[offset + 2 * actor])
            pending = int(states[offset + 2 * actor + 1])
            write_i64_le(out, i64(machine.locals[local].fingerprint))
            write_i64_le(out, i64(search.in_flight.fingerprints[pending]))
        budget = int(states[offset + stride - 1])
        write_i64_le(out, i64(search.budgets.fingerprints[budget]))
        write_i64_le(out, fingerprints[place])
        write_i64_le(out, parents[place] if place < len(parents) else i64(NONE))
        offset += stride
    return out.getvalue()


def take_states(search: Search, data: bytes) -> None:
    """Take in packed states, for the next level.

    Those with a parent were found by another search, and this one, which owns them, may know them.
    """
    stride = 2 * search.actors + 1
    at: i64 = 0
    row = vec[i32]([0] * stride)
    while at < len(data):
        _read(search, data, at, row)
        at += 8 * stride
        fingerprint, parent = int(read_i64_le(data, at)), int(read_i64_le(data, at + 8))
        if parent == NONE:
            search.upcoming.append(row, fingerprint)
        else:
            search.take_in(row, fingerprint, parent)
        at += 16


def _read(search: Search, data: bytes, at: i64, row: vec[i32]) -> None:
    machine = search.machine
    for actor in range(search.actors):
        row[2 * actor] = i32(machine.local_of(int(read_i64_le(data, at))))
        pending = search.in_flight.of_fingerprint(int(read_i64_le(data, at + 8)))
        row[2 * actor + 1] = i32(pending)
        at += 16
    row[2 * search.actors] = i32(search.budgets.of_fingerprint(int(read_i64_le(data, at))))


def pack_queue(search: Search, queue: StateQueue) -> Iterator[bytes]:
    """Take all states out of a queue, packed in pieces."""
    row = vec[i32]([0] * (2 * search.actors + 1))
    while len(queue):
        states = vec[i32]()
        fingerprints = vec[i64]()
        for _ in range(min(_AT_A_TIME, len(queue))):
            fingerprints = append(fingerprints, queue.take(row))
            for part in row:
                states = append(states, part)
        yield pack_states(search, states, fingerprints, vec[i64]())


def pack_visited(search: Search) -> Iterator[bytes]:
    """Pack the states that were visited, with parents and levels, in pieces."""
    out = BytesWriter()
    for packed, (fingerprint, parent, level) in enumerate(search.visited.rows(), 1):
        write_i64_le(out, i64(fingerprint))
        write_i64_le(out, i64(parent))
        write_i64_le(out, i64(level))
        if packed % _AT_A_TIME == 0:
            yield out.getvalue()
            out = BytesWriter()
    yield out.getvalue()


def unpack_visited(search: Search, data: bytes) -> None:
    at: i64 = 0
    end = len(data)
    while at < end:
        search.visited.add(
            read_i64_le(data, at), read_i64_le(data, at + 8), read_i64_le(data, at + 16)
        )
        at += 24
