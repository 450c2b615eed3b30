"""States as bytes that mean the same in every process: parts by their fingerprints.

Numbers of events, states of processes and inboxes are private to a process that searches. To
hand a state to another one, or to a file, each part is named by its fingerprint; and what the
other needs to know the part by is told first (`News`).
"""

from __future__ import annotations

from typing import final

from librt.strings import BytesWriter, read_i64_le, write_i64_le
from librt.vecs import vec
from mypy_extensions import i32, i64

from flexgroup.worlds.explorer.search import Search


@final
class News:
    """What a search has added to its tables since it last told."""

    __slots__ = ("budgets", "inboxes", "steps")

    def __init__(
        self,
        steps: list[tuple[int, int]],
        inboxes: list[tuple[int, ...]],
        budgets: list[tuple[int, ...]],
    ) -> None:
        self.steps = steps
        self.inboxes = inboxes
        self.budgets = budgets


@final
class Newsroom:
    """Tells what is new in the tables of a search, and takes in what others tell."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._steps = 0
        self._inboxes = 0
        self._budgets = 0

    def tell(self) -> News:
        machine = self._search.machine
        inboxes = self._search.inboxes
        budgets = self._search.budgets
        news = News(
            machine.recipes[self._steps :],
            [
                tuple([machine.events[event].fingerprint for event in contents])
                for contents in inboxes.contents[self._inboxes :]
            ],
            budgets.left[self._budgets :],
        )
        self._told()
        return news

    def hear(self, news: News) -> None:
        """Do the steps that another search has computed; then all that it speaks of is known."""
        machine = self._search.machine
        for local, event in news.steps:
            machine.step(machine.local_of(local), machine.event_of(event))
        for contents in news.inboxes:
            self._search.inboxes.with_contents(
                tuple([machine.event_of(event) for event in contents])
            )
        for left in news.budgets:
            self._search.budgets.number(left)

    def heard(self) -> None:
        """What was heard need not be told again."""
        self._told()

    def _told(self) -> None:
        self._steps = len(self._search.machine.recipes)
        self._inboxes = len(self._search.inboxes.contents)
        self._budgets = len(self._search.budgets.left)


def packed(search: Search, states: vec[i32], marks: vec[i64], parents: vec[i64]) -> bytes:
    """States with their fingerprints and, where there are any, their parents'."""
    out = BytesWriter()
    machine = search.machine
    stride = 2 * search.actors + 1
    offset: i64 = 0
    for place in range(len(marks)):
        for actor in range(search.actors):
            local = int(states[offset + 2 * actor])
            inbox = int(states[offset + 2 * actor + 1])
            write_i64_le(out, i64(machine.locals[local].fingerprint))
            write_i64_le(out, i64(search.inboxes.fingerprints[inbox]))
        budget = int(states[offset + stride - 1])
        write_i64_le(out, i64(search.budgets.fingerprints[budget]))
        write_i64_le(out, marks[place])
        write_i64_le(out, parents[place] if place < len(parents) else i64(-1))
        offset += stride
    return out.getvalue()


def unpacked(search: Search, data: bytes) -> list[list[int]]:
    """The states as numbers of this search."""
    stride = 2 * search.actors + 1
    found: list[list[int]] = []
    at: i64 = 0
    row = vec[i32]([0] * stride)
    while at < len(data):
        _read(search, data, at, row)
        found.append([int(part) for part in row])
        at += 8 * (stride + 2)
    return found


def take_in(search: Search, data: bytes) -> None:
    """States that another search has found, and this one owns."""
    stride = 2 * search.actors + 1
    at: i64 = 0
    row = vec[i32]([0] * stride)
    while at < len(data):
        _read(search, data, at, row)
        at += 8 * stride
        search.take_in(row, int(read_i64_le(data, at)), int(read_i64_le(data, at + 8)))
        at += 16


def _read(search: Search, data: bytes, at: i64, row: vec[i32]) -> None:
    machine = search.machine
    for actor in range(search.actors):
        row[2 * actor] = i32(machine.local_of(int(read_i64_le(data, at))))
        inbox = search.inboxes.of_fingerprint(int(read_i64_le(data, at + 8)))
        row[2 * actor + 1] = i32(inbox)
        at += 16
    row[2 * search.actors] = i32(search.budgets.of_fingerprint(int(read_i64_le(data, at))))


def pack_visited(search: Search) -> bytes:
    out = BytesWriter()
    for mark, parent, level in search.visited.rows():
        write_i64_le(out, i64(mark))
        write_i64_le(out, i64(parent))
        write_i64_le(out, i64(level))
    return out.getvalue()


def unpack_visited(search: Search, data: bytes) -> None:
    at: i64 = 0
    end = len(data)
    while at < end:
        search.visited.add(
            read_i64_le(data, at), read_i64_le(data, at + 8), read_i64_le(data, at + 16)
        )
        at += 24
