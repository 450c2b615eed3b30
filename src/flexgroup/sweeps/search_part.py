"""One part of one level of a search on Spark: what an executor does, and the files it leaves.

A state belongs to the part that the states of its processes fall to. Whoever does a part of a
level reads the states that were found for it, leaves out those that were visited before, expands
the others, and writes what it found for each part of the next level. Only then is it known what was
new, so a state is expanded by whoever owns it, and nobody has to keep anything in memory from one
level to the next.

The tables behind the states (steps of processes, packets in flight) are kept in each Python worker
for as long as it lives: they are small, and filling them anew means to run the protocol.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from flexgroup.core.errors import UsageError
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.exchange import share
from flexgroup.worlds.explorer.machine import ClientAddressedError
from flexgroup.worlds.explorer.ownership import Sharing
from flexgroup.worlds.explorer.packed_states import (
    TableExchange,
    TableUpdates,
    pack_queue,
    take_states,
    unpack_visited,
)
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.explorer.search import Search
from flexgroup.worlds.explorer.search_setup import SearchOptions, new_search
from flexgroup.worlds.explorer.spilled import NONE
from flexgroup.worlds.explorer.symmetry import AsymmetricError
from flexgroup.worlds.explorer.visited import Visited

Integers = npt.NDArray[np.int64]

AT_ONCE = 50_000
"""How many states are expanded before what they lead to is written."""

OF_NOBODY = -1
"""The number of a worker that no state belongs to: it posts all that it finds."""

BEFORE_FIRST = -2
"""The fingerprint that stands for the parent of the first state."""

VISITED = "visited.parquet"
FOUND = "found.parquet"
TABLES = "tables"

FINGERPRINT = -2
PARENT = -1
"""The columns of a packed state."""

ASYMMETRIC = "asymmetric"
ABOUT_CLIENTS = "about clients"
"""Why a search has to be made in another way."""


@dataclass(frozen=True)
class Question:
    """What is searched, in how many parts, and how: small, for all executors."""

    stack: str
    scope: Scope
    options: SearchOptions
    parts: int
    protocols: tuple[str, ...] = ()

    def new_search(self) -> Search:
        for module in self.protocols:
            import_module(module)
        return new_search(parse_stack(self.stack), self.scope, self.options)

    def share(self, search: Search) -> Sharing:
        """Have a search post all states that it finds from now on for the parts they belong to."""
        share(search, list(range(search.actors)), self.parts, OF_NOBODY)
        assert search.sharing is not None
        return search.sharing


@dataclass(frozen=True)
class Level:
    """A level to be searched: where its states are, and what is known so far."""

    number: int
    place: str
    """The folder for the results."""
    found: tuple[str, ...]
    """The folders with states for this level."""
    tables: tuple[str, ...]
    """The folders with what has to be known of steps before, in the order in which they came."""
    visited: tuple[tuple[str, ...], ...]
    """The folders with what each part has visited."""
    is_last: bool = False
    """Whether to count the states only, since the search ends here for now."""


@dataclass
class PartTotals:
    """What a part of a level came to."""

    part: int
    folder: str = ""
    states: int = 0
    transitions: int = 0
    terminals: int = 0
    complete: int = 0
    strays: int = 0
    findings: list[tuple[str, int, int]] = field(default_factory=list)
    posted: list[int] = field(default_factory=list)
    """The parts that states of the next level were found for."""
    trouble: str = ""
    """ASYMMETRIC or ABOUT_CLIENTS, if the search has to be made in another way."""


class Tables:
    """A search with the tables of steps, and the account of what all know."""

    def __init__(self, question: Question) -> None:
        self.search = question.new_search()
        self._exchange = TableExchange(self.search)
        self._exchange.skip()
        self._known: set[str] = set()
        self._ours = TableUpdates([], [], [])
        """What was added here and is in no folder that counts yet."""

    def learn(self, folders: Sequence[str]) -> None:
        """Take in the tables of these folders, as far as they are not known."""
        for folder in folders:
            if folder not in self._known:
                updates = read_tables(folder)
                self._note()
                self._exchange.apply(updates)
                self._exchange.skip()
                self._ours = _without(self._ours, updates)
                self._known.add(folder)

    def news(self) -> TableUpdates:
        """Return all that somebody may not know who has read the same folders."""
        self._note()
        return self._ours

    def _note(self) -> None:
        more = self._exchange.collect()
        ours = self._ours
        self._ours = TableUpdates(
            ours.steps + more.steps,
            ours.in_flight + more.in_flight,
            ours.budgets + more.budgets,
        )


def _without(ours: TableUpdates, theirs: TableUpdates) -> TableUpdates:
    steps, in_flight, budgets = set(theirs.steps), set(theirs.in_flight), set(theirs.budgets)
    return TableUpdates(
        [step for step in ours.steps if step not in steps],
        [contents for contents in ours.in_flight if contents not in in_flight],
        [left for left in ours.budgets if left not in budgets],
    )


def write_tables(folder: Path, updates: TableUpdates, ends: list[list[list[int]]]) -> None:
    """Write what was added to the tables, and the histories in which runs end."""
    document = {
        "steps": updates.steps,
        "in_flight": updates.in_flight,
        "budgets": updates.budgets,
        "ends": ends,
    }
    (folder / TABLES).write_bytes(zlib.compress(json.dumps(document).encode(), 1))


def _tables(folder: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(zlib.decompress(Path(folder, TABLES).read_bytes()))
    return document


def read_tables(folder: str) -> TableUpdates:
    document = _tables(folder)
    return TableUpdates(
        [(local, event) for local, event in document["steps"]],
        [tuple(contents) for contents in document["in_flight"]],
        [tuple(left) for left in document["budgets"]],
    )


def read_ends(folder: str) -> list[tuple[tuple[int, ...], ...]]:
    return [tuple(tuple(history) for history in ends) for ends in _tables(folder)["ends"]]


class PackedStates:
    """A file of packed states for the parts of the next level, and of those it is read by."""

    columns = pa.schema([("part", pa.int32()), ("states", pa.large_binary())])

    def __init__(self, folder: Path) -> None:
        self._writer = pq.ParquetWriter(
            folder / FOUND, self.columns, compression="zstd", compression_level=1,
            use_dictionary=False,
        )  # fmt: skip
        self.parts: set[int] = set()

    def add(self, part: int, packed: bytes) -> None:
        """Add states for a part, as rows that can be read without those for others."""
        if packed:
            self.parts.add(part)
            rows = {"part": [part], "states": [packed]}
            self._writer.write_table(pa.Table.from_pydict(rows, self.columns))

    def close(self) -> None:
        self._writer.close()


def packed_for(part: int, folders: Sequence[str]) -> Iterator[bytes]:
    """Yield the states that were found for a part, in the folders of those that found them."""
    for folder in folders:
        with pq.ParquetFile(Path(folder, FOUND)) as file:
            for group in range(file.metadata.num_row_groups):
                if file.metadata.row_group(group).column(0).statistics.min == part:
                    for packed in file.read_row_group(group, ["states"])["states"]:
                        yield packed.as_py()


def begin_search(question: Question, folder: Path) -> int:
    """Write the first state as one that was found, and return its fingerprint."""
    search = question.new_search()
    (fingerprint, _, _), *_ = search.visited.rows()
    part = question.share(search).ownership.owner_of(search.first)
    packed = b"".join(pack_queue(search, search.frontier))
    states = _unpacked(packed, 2 * search.actors + 3).copy()
    states[:, PARENT] = BEFORE_FIRST
    file = PackedStates(folder)
    file.add(part, states.tobytes())
    file.close()
    write_tables(folder, TableUpdates([], [], []), [])
    search.machine.forget()
    return fingerprint


def _unpacked(packed: bytes, width: int) -> Integers:
    return np.frombuffer(packed, np.dtype("<i8")).reshape(-1, width)


_kept: dict[tuple[Any, ...], Tables] = {}
"""The tables of the search that this Python worker took part in last."""


def tables_of(question: Question, tables: Sequence[str]) -> Tables:
    """Return the tables of a search that knows these folders, from before or from the files."""
    key = (question, tables[0])
    if key not in _kept:
        for other in _kept.values():
            other.search.machine.forget()
        _kept.clear()
        _kept[key] = Tables(question)
    _kept[key].learn(tables)
    return _kept[key]


def search_part(question: Question, level: Level, part: int) -> PartTotals:
    """Do a part of a level: its files are in a folder of their own, which counts when the level is
    committed with its name."""
    try:
        return _search_part(question, level, part)
    except AsymmetricError:
        return PartTotals(part, trouble=ASYMMETRIC)
    except ClientAddressedError:
        return PartTotals(part, trouble=ABOUT_CLIENTS)


def _search_part(question: Question, level: Level, part: int) -> PartTotals:
    tables = tables_of(question, level.tables)
    search = tables.search
    _forget_counts(search)
    # Anew for each part: a state that was posted by one that failed must be posted again.
    sharing = question.share(search)
    totals = PartTotals(part)
    search.visited = Visited()
    found = _distinct(packed_for(part, level.found), 2 * search.actors + 3)
    unpack_visited(search, _as_visited(known_of(level.visited[part], found, search)))
    before = search.visited.count
    folder = Path(level.place, f"part-{part:05}-{uuid4().hex}")
    folder.mkdir(parents=True)
    totals.folder = str(folder)
    if level.is_last:
        _take(search, found, level.number)
    else:
        _expand(search, sharing, found, level.number, folder, totals)
        write_tables(folder, tables.news(), _ends(search))
    _write_visited(folder, search, level.number)
    totals.states = search.visited.count - before
    totals.transitions, totals.terminals = search.transitions, search.terminals
    totals.complete, totals.strays = search.complete, search.strays
    totals.findings = [(broken, state, at) for broken, state, at in search.findings]
    search.visited = Visited()
    return totals


def _expand(
    search: Search, sharing: Sharing, found: Integers, level: int, folder: Path, totals: PartTotals
) -> None:
    """Take in what is new among these states, and write what it leads to."""
    file = PackedStates(folder)
    for first in range(0, len(found), AT_ONCE):
        _take(search, found[first : first + AT_ONCE], level)
        search.next_level()
        search.expand(AT_ONCE)
        names = Names(search)
        for other, posted in enumerate(sharing.collect()):
            file.add(other, names.packed(posted, sharing.symmetric))
    if search.symmetry is not None:
        search.symmetry.verify()
    file.close()
    totals.posted = sorted(file.parts)


class Names:
    """The fingerprints of what states consist of, by the numbers that a search gives to it."""

    def __init__(self, search: Search) -> None:
        machine = search.machine
        self._actors = search.actors
        self._locals = np.array([local.fingerprint for local in machine.locals], np.int64)
        self._in_flight = np.array(list(search.in_flight.fingerprints), np.int64)
        self._budgets = np.array(list(search.budgets.fingerprints), np.int64)

    def packed(self, posted: bytes, symmetric: bool) -> bytes:
        """Return states that were posted in numbers as they are packed: in fingerprints."""
        stride = 2 * self._actors + 1
        known_as, parent = 0, 1
        itself = 2 if symmetric else known_as
        fields = [("head", "<i8", (2 + symmetric,)), ("state", "<i4", (stride,))]
        records = np.frombuffer(posted, np.dtype(fields))
        head, state = records["head"], records["state"]
        packed = np.empty((len(records), stride + 2), np.dtype("<i8"))
        packed[:, 0 : stride - 1 : 2] = self._locals[state[:, 0 : stride - 1 : 2]]
        packed[:, 1 : stride - 1 : 2] = self._in_flight[state[:, 1 : stride - 1 : 2]]
        packed[:, stride - 1] = self._budgets[state[:, stride - 1]]
        packed[:, FINGERPRINT] = head[:, itself]
        packed[:, PARENT] = head[:, parent]
        return packed.tobytes()


def _ends(search: Search) -> list[list[list[int]]]:
    """Return the histories of all processes, for each way in which runs end here."""
    histories = search.machine.histories
    return [
        [list(histories[number]) for number in numbers]
        for numbers in sorted(search.terminal_orders)
    ]


def _forget_counts(search: Search) -> None:
    """Let the search begin with no states and nothing counted, whatever was done with it before."""
    search.next_level()
    search.next_level()
    search.transitions = search.terminals = search.complete = search.strays = 0
    search.findings = []
    search.found = set()
    search.terminal_orders = set()


def _take(search: Search, states: Integers, level: int) -> None:
    search.level = level - 1
    take_states(search, states.tobytes())


def _distinct(packed: Iterator[bytes], width: int) -> Integers:
    """Return the states without those that came more than once, in the order in which they came."""
    arrays = [_unpacked(some, width) for some in packed]
    if not arrays:
        return np.empty((0, width), np.int64)
    states = np.concatenate(arrays)
    _, places = np.unique(states[:, FINGERPRINT], return_index=True)
    places.sort()
    distinct: Integers = states[places]
    return distinct


def known_of(folders: Sequence[str], found: Integers, search: Search) -> Integers:
    """Return the fingerprints that a part has visited, of those that may be met again.

    Without symmetry these are among what was found. With it, which of the fingerprints of a state
    counts is told when the state is unpacked, so it may be any.
    """
    known = [
        pq.read_table(Path(folder, VISITED), columns=["fingerprint"])["fingerprint"].to_numpy()
        for folder in folders
    ]
    if search.symmetry is None:
        wanted = np.sort(found[:, FINGERPRINT])
        known = [wanted[_is_among(wanted, visited)] for visited in known]
    return np.concatenate([np.empty(0, np.int64), *known])


def _is_among(wanted: Integers, visited: Integers) -> npt.NDArray[np.bool_]:
    """Tell of each number whether it is among others, which are sorted."""
    places = np.searchsorted(visited, wanted)
    places[places == len(visited)] = 0
    among: npt.NDArray[np.bool_] = visited[places] == wanted if len(visited) else wanted != wanted
    return among


def _as_visited(known: Integers) -> bytes:
    """Return states that were visited in the form in which a table of them is packed.

    At which level they were is not asked any more, only that it was an earlier one.
    """
    rows = np.zeros((len(known), 3), np.dtype("<i8"))
    rows[:, 0] = known
    rows[:, 1] = NONE
    return rows.tobytes()


def _write_visited(folder: Path, search: Search, level: int) -> None:
    rows = np.fromiter(chain.from_iterable(search.visited.rows()), np.int64).reshape(-1, 3)
    rows = rows[(rows[:, 2] == level) & (rows[:, 1] != NONE)]
    rows = rows[np.argsort(rows[:, 0])]
    table = pa.Table.from_arrays(
        [pa.array(rows[:, 0]), pa.array(rows[:, 1])], ["fingerprint", "parent"]
    )
    # Fingerprints are as good as random: nothing can be saved by compressing them.
    pq.write_table(table, folder / VISITED, compression="none", use_dictionary=False)


def parent_in(folder: str, fingerprint: int) -> int | None:
    """Return the parent of a state that was visited, if it was found here."""
    table = pq.read_table(Path(folder, VISITED))
    visited = table["fingerprint"].to_numpy()
    place = int(np.searchsorted(visited, fingerprint))
    if place == len(visited) or visited[place] != fingerprint:
        return None
    return int(table["parent"][place].as_py())


def remove_uncommitted(level: Path, committed: Sequence[str]) -> None:
    """Remove what tasks left that did not come to count."""
    for folder in level.glob("part-*"):
        if str(folder) not in committed:
            shutil.rmtree(folder, ignore_errors=True)


def refuse_too_deep(level: int) -> None:
    """The table of visited states has 16 bits for the level."""
    if level >= 1 << 15:
        raise UsageError(f"the search is {level} steps deep, and cannot go deeper")
