"""A run of any length in the order of time: counted in windows, and single events read when wanted.

In memory are the time, process, kind, step and message of each event, in columns as narrow as
their numbers, and where the event stands in its file: about thirty bytes an event. What else is
known of it is read again, from the row group that holds it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from flexgroup.core.message import NO_MESSAGE, MessageId
from flexgroup.trace import schema
from flexgroup.trace.history import Ints, SmallInts, by_key, by_pairs, in_order, no_ints
from flexgroup.trace.reader import (
    event_files,
    ints,
    messages,
    parquet_file,
    read_table,
    unreadable,
)
from flexgroup.trace.rules import refuse_broken_rules
from flexgroup.trace.run import Run
from flexgroup.trace.run_events import refuse_repeated_multicasts, refuse_repeated_steps
from flexgroup.trace.run_files import part_of, refuse_file_problems

KINDS = len(schema.KINDS)

INDEXED = ("run", "process", "step", "time", "origin", "seq")
INDEXED_OF = {
    schema.RECEIVE: ("peer", "sent"),
    schema.MULTICAST: ("destinations",),
}
"""The columns that are read of all events, and those that are read of some kinds besides."""

Destinations = tuple[int, ...]
Row = dict[str, Any]
"""An event with the columns of the trace, and its kind in the column `event`."""


@dataclass(frozen=True)
class Chosen:
    """Which events of a run are wanted; None where all are."""

    processes: tuple[int, ...] | None = None
    kinds: tuple[str, ...] | None = None
    messages: tuple[MessageId, ...] | None = None
    destinations: Destinations | None = None
    """Events about messages to exactly these processes."""


EVERYTHING = Chosen()


@dataclass(frozen=True)
class _File:
    """A file of events, and where its rows stand among those of all files of the run."""

    path: Path
    kind: str
    first: int
    groups: Ints
    """The first row of each row group, and behind the last one the number of rows."""
    named: bool
    """Whether it tells what messages are called where the run comes from."""

    @property
    def rows(self) -> int:
        return int(self.groups[-1])


class Timeline:
    """The events of one run, in the order of time."""

    def __init__(self, run: Run, files: Sequence[_File], columns: _Columns) -> None:
        self.run = run
        self._files = files
        order = in_order(columns.time)
        self._time: Ints = columns.time[order]
        self.processes = max(run.processes + run.clients, 1 + int(columns.process.max(initial=-1)))
        """How many processes and clients there are, whether they do anything or not."""
        code = columns.process.astype(np.int64) * KINDS + columns.kind
        self._code = narrow(code[order])
        self._step = narrow(columns.step[order])
        self._place = narrow(columns.place[order])
        self._identities, self._message = _numbered(columns.message[order])
        self.groups, self._group_of = _groups(columns.multicasts, self._identities)
        process, step = self._process(slice(None)), self._step
        self._by_step = narrow(by_pairs(process, step.astype(np.int64)))
        counts = np.bincount(process, minlength=self.processes)
        self._begins = np.concatenate(([0], np.cumsum(counts)))
        self._received = _Received(columns, order)

    def __len__(self) -> int:
        return len(self._time)

    @property
    def span(self) -> tuple[int, int]:
        """The time of the first event, and the first moment after the last."""
        if not len(self):
            return 0, 1
        return int(self._time[0]), int(self._time[-1]) + 1

    def span_of(self, chosen: Chosen) -> tuple[int, int]:
        """Return the time of the first of these events and the first moment after the last; those
        of the run, if there are none."""
        rows = self._rows(0, len(self), chosen)
        if not len(rows):
            return self.span
        return int(self._time[rows[0]]), int(self._time[rows[-1]]) + 1

    def destinations_of(self, message: MessageId) -> Destinations | None:
        """Return to whom a message is multicast, if that was recorded."""
        for number in np.flatnonzero(self._identities == message):
            group = int(self._group_of[number])
            return self.groups[group][0] if group >= 0 else None
        return None

    def counts(
        self,
        edges: Sequence[int],
        bands: Sequence[Sequence[int]] | None = None,
        chosen: Chosen = EVERYTHING,
    ) -> list[list[list[int]]]:
        """Count events between each two of these times, for bands of processes: by band, column and
        kind. Without bands, all processes are one."""
        bands = [range(self.processes)] if bands is None else bands
        cells = len(bands) * KINDS
        # Where the events of a process and a kind are counted; behind the cells, what nobody wants.
        cell_of = np.full((self.processes, KINDS), cells)
        for number, members in enumerate(bands):
            cell_of[list(members)] = number * KINDS + np.arange(KINDS)
        cell_of[~self._wanted_processes(chosen)] = cells
        cell_of[:, ~_wanted_kinds(chosen)] = cells
        cell_of = narrow(cell_of.ravel())
        wanted = self._wanted_messages(chosen)
        found = np.zeros((len(edges) - 1, cells), dtype=np.int64)
        bounds = np.searchsorted(self._time, edges)
        for column, (begin, end) in enumerate(pairwise(bounds)):
            codes = self._code[begin:end]
            if wanted is not None:
                codes = codes[wanted[self._message[begin:end]]]
            found[column] = np.bincount(cell_of[codes], minlength=cells + 1)[:cells]
        counts: list[list[list[int]]] = (
            found.reshape(len(edges) - 1, len(bands), KINDS).swapaxes(0, 1).tolist()
        )
        return counts

    def totals(self, first: int, last: int, chosen: Chosen = EVERYTHING) -> dict[str, int]:
        """Count events from one time until before another, by the kinds that occur."""
        ((kinds,),) = self.counts([first, last], None, chosen)
        return {kind: count for kind, count in zip(schema.KINDS, kinds, strict=True) if count}

    def rows(self, first: int, last: int, chosen: Chosen = EVERYTHING) -> Ints:
        """Return the numbers of the events from one time until before another."""
        begin, end = np.searchsorted(self._time, (first, last))
        return self._rows(int(begin), int(end), chosen)

    def around(self, time: int, events: int) -> tuple[int, int]:
        """Return a span of time with so many events before this time, and as many from it on."""
        if not len(self):
            return self.span
        place = int(np.searchsorted(self._time, time))
        first, last = max(0, place - events), min(len(self) - 1, place + events)
        return int(self._time[first]), int(self._time[last]) + 1

    def read(self, rows: Iterable[int]) -> list[Row]:
        """Read these events with all their columns, in the order in which they are asked for."""
        asked = np.fromiter(rows, dtype=np.int64)
        places = self._place[asked].astype(np.int64)
        found: dict[int, Row] = {}
        firsts = np.array([file.first for file in self._files] or [0])
        number = np.searchsorted(firsts, places, side="right") - 1
        for at in np.unique(number):
            file = self._files[at]
            for place, row in _read_rows(file, np.unique(places[number == at]) - file.first):
                found[place + file.first] = row
        return [found[int(place)] for place in places]

    def naming_files(self, kind: str = "") -> list[Path]:
        """Return the files, of one kind or of all, that tell what messages are called where the run
        comes from."""
        return [file.path for file in self._files if file.named and kind in ("", file.kind)]

    def row_at(self, process: int | None, step: int | None) -> int | None:
        """Return the number of the event at this step of a process, if it was recorded."""
        if process is None or step is None or not 0 <= process < self.processes:
            return None
        steps = self._by_step[int(self._begins[process]) : int(self._begins[process + 1])]
        place = bisect_left(steps, step, key=lambda row: int(self._step[row]))
        if place == len(steps) or self._step[steps[place]] != step:
            return None
        return int(steps[place])

    def other_ends(self, read: Iterable[Row]) -> list[int]:
        """Return the numbers of the sends of packets that are received among these events, and of
        the receives of those that are sent."""
        found: list[int] = []
        for row in read:
            if row["event"] == schema.RECEIVE:
                sent = self.row_at(row.get("peer"), row.get("sent"))
                found += [sent] if sent is not None else []
            elif row["event"] == schema.SEND:
                found += self._received.of(row["process"], row["step"])
        return found

    def steps_at(self, process: int) -> Ints:
        """Return the numbers of the events of a process, in the order of steps."""
        if not 0 <= process < self.processes:
            return no_ints()
        begin, end = self._begins[process], self._begins[process + 1]
        return self._by_step[int(begin) : int(end)].astype(np.int64)

    def time_of(self, row: int) -> int:
        return int(self._time[row])

    def _process(self, rows: slice) -> Ints:
        return self._code[rows].astype(np.int64) // KINDS

    def _rows(self, begin: int, end: int, chosen: Chosen) -> Ints:
        codes = self._code[begin:end]
        flags = np.ones(len(codes), dtype=np.bool_)
        if chosen.processes is not None or chosen.kinds is not None:
            pairs = self._wanted_processes(chosen)[:, None] & _wanted_kinds(chosen)
            flags &= pairs.ravel()[codes]
        wanted = self._wanted_messages(chosen)
        if wanted is not None:
            flags &= wanted[self._message[begin:end]]
        return begin + np.flatnonzero(flags)

    def _wanted_processes(self, chosen: Chosen) -> NDArray[np.bool_]:
        if chosen.processes is None:
            return np.ones(self.processes, dtype=np.bool_)
        flags = np.zeros(self.processes, dtype=np.bool_)
        flags[[process for process in chosen.processes if process < self.processes]] = True
        return flags

    def _wanted_messages(self, chosen: Chosen) -> NDArray[np.bool_] | None:
        """Tell of each message, by its number, whether it is wanted, and last of none."""
        if chosen.messages is None and chosen.destinations is None:
            return None
        flags = np.zeros(len(self._identities) + 1, dtype=np.bool_)
        flags[:-1] = True
        if chosen.messages is not None:
            flags[:-1] &= np.isin(self._identities, chosen.messages)
        if chosen.destinations is not None:
            known = [group for group, _ in self.groups]
            number = known.index(chosen.destinations) if chosen.destinations in known else -2
            flags[:-1] &= self._group_of == number
        return flags


class _Received:
    """Finds the events at which a packet was received."""

    def __init__(self, columns: _Columns, order: Ints) -> None:
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        rows = rank[columns.first_receive :][: len(columns.sent)]
        sorted_ = by_pairs(columns.peer, columns.sent)
        self._peer = narrow(columns.peer[sorted_])
        self._sent = narrow(columns.sent[sorted_])
        self._rows = narrow(rows[sorted_])

    def of(self, process: int, step: int) -> list[int]:
        begin, end = np.searchsorted(self._peer, (process, process + 1))
        sent = self._sent[begin:end]
        first, last = np.searchsorted(sent, step), np.searchsorted(sent, step, side="right")
        return [int(row) for row in self._rows[begin + first : begin + last]]


@dataclass
class _Columns:
    """The columns that are read of all events, in the order of files."""

    time: Ints
    process: SmallInts
    kind: SmallInts
    step: Ints
    message: Ints
    place: Ints
    first_receive: int
    """The first of the rows that are receives."""
    peer: Ints
    sent: Ints
    multicasts: list[tuple[Ints, Ints, Ints]]
    """Messages, how many destinations each has, and all destinations one after the other."""


def open_timeline(
    directory: Path,
    run: Run,
    runs: Collection[str] = (),
    report: Callable[[float], None] = lambda share: None,
) -> Timeline:
    """Read what is kept of a run, and say which share of it is there on the way.

    Files of other `runs` are not looked at. Raises UsageError if a file is damaged or missing, or
    breaks a rule of traces.
    """
    files = _files(directory, run, runs)
    everything = 1 + sum(file.rows for file in files)
    parts: list[_Part] = []
    for file in files:
        parts.append(_part(file, run.run))
        report((file.first + file.rows) / everything)
    columns = _together(parts)
    refuse_repeated_steps(run.run, columns.process, columns.step)
    for message, _, _ in columns.multicasts:
        refuse_repeated_multicasts(run.run, message)
    return Timeline(run, files, columns)


def events_told_of(directory: Path, run: Run, runs: Collection[str] = ()) -> int:
    """Return how many events the files that hold a run have, as their footers tell.

    Raises UsageError if a file is damaged at its end, or missing.
    """
    return sum(file.rows for file in _files(directory, run, runs))


def files_of(directory: Path, run: str, runs: Collection[str] = ()) -> Iterator[tuple[str, Path]]:
    """Yield the kind and the path of each file that may have events of a run: those that other runs
    have for themselves have none."""
    names = {run, *runs}
    for kind in schema.KINDS:
        for path in event_files(directory, run, kind):
            part = part_of(path.stem, names)
            if part is None or part.run == run:
                yield kind, path


def _files(directory: Path, run: Run, runs: Collection[str]) -> list[_File]:
    files: list[_File] = []
    rows: dict[str, dict[str, int]] = {}
    first = 0
    for kind, path in files_of(directory, run.run, runs):
        groups, columns = _row_groups(path)
        files.append(_File(path, kind, first, groups, kind in schema.NAMED and "name" in columns))
        first += files[-1].rows
        rows.setdefault(kind, {})[path.stem] = files[-1].rows
    refuse_file_problems([run], rows, runs)
    return files


def narrow(numbers: Ints) -> SmallInts:
    """Return the numbers in four bytes each, or two, if they fit."""
    most = max(int(numbers.max(initial=0)), -int(numbers.min(initial=0)))
    for kind in (np.int16, np.int32):
        if most <= np.iinfo(kind).max:
            return numbers.astype(kind)
    return numbers


@dataclass(frozen=True)
class _Part:
    """What one file has of the run."""

    file: _File
    place: Ints
    table: pa.Table


def _part(file: _File, run: str) -> _Part:
    wanted = [*INDEXED, *INDEXED_OF.get(file.kind, ())]
    required = schema.required_columns(file.kind)
    table = read_table(file.path, schema.EVENT_COLUMNS, wanted, required)
    place = np.arange(table.num_rows)
    if any(chunk.dictionary.to_pylist() != [run] for chunk in table.column("run").chunks):
        own = pc.equal(table.column("run").cast(pa.string()), run)
        place = np.flatnonzero(own.to_numpy())
        table = table.filter(own)
    refuse_broken_rules(file.path, file.kind, table)
    return _Part(file, place + file.first, table)


def _together(parts: Sequence[_Part]) -> _Columns:
    def column(name: str, of: Sequence[_Part] = parts, missing: int = 0) -> Ints:
        return _joined([ints(part.table, name, missing) for part in of])

    sizes = [part.table.num_rows for part in parts]
    kinds = [schema.KINDS.index(part.file.kind) for part in parts]
    received = [part for part in parts if part.file.kind == schema.RECEIVE]
    before = sizes[: parts.index(received[0])] if received else sizes
    multicast = [part.table for part in parts if part.file.kind == schema.MULTICAST]
    return _Columns(
        time=column("time"),
        process=column("process").astype(np.int32),
        kind=np.repeat(np.array(kinds, dtype=np.int8), sizes),
        step=column("step"),
        message=_joined([messages(part.table) for part in parts]),
        place=_joined([part.place for part in parts]),
        first_receive=sum(before),
        peer=column("peer", received, -1),
        sent=column("sent", received, -1),
        multicasts=[(messages(table), *_lists(table)) for table in multicast if table.num_rows],
    )


def _joined(columns: Sequence[Ints]) -> Ints:
    return np.concatenate(columns) if columns else no_ints()


def _lists(table: pa.Table) -> tuple[Ints, Ints]:
    lists = table.column("destinations").combine_chunks()
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths, lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64)


def _numbered(message: Ints) -> tuple[Ints, SmallInts]:
    """Return all messages, and of each event the number of its message among them, or -1."""
    encoded = pa.array(message, mask=message == NO_MESSAGE).dictionary_encode()
    identities: Ints = encoded.dictionary.to_numpy(zero_copy_only=False).astype(np.int64)
    numbers = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return identities, numbers.astype(np.int32)


def _groups(
    multicasts: Sequence[tuple[Ints, Ints, Ints]], identities: Ints
) -> tuple[list[tuple[Destinations, int]], SmallInts]:
    """Return the sets of processes to which messages are multicast, with how many are, the most
    frequent first; and of each message the number of its set, or -1."""
    message, lengths, targets = (
        _joined([part[position] for part in multicasts]) for position in range(3)
    )
    begins = np.cumsum(lengths) - lengths
    found: list[tuple[Destinations, Ints]] = []
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        sets = np.sort(targets[begins[rows][:, None] + np.arange(length)], axis=1)
        code = np.zeros(len(rows), dtype=np.int64)
        for place in range(length):  # after each, sets that begin alike have one number
            pairs = code * (int(targets.max()) + 1) + sets[:, place]
            _, code = np.unique(pairs, return_inverse=True)
        for _, alike in by_key(code):
            members = tuple(int(target) for target in sets[alike[0]])
            found.append((members, message[rows[alike]]))
    found.sort(key=lambda group: (-len(group[1]), group[0]))
    of = np.full(len(identities), -1, dtype=np.int32)
    sorted_ = np.argsort(identities)
    for number, (_, own) in enumerate(found):
        of[sorted_[np.searchsorted(identities, own, sorter=sorted_)]] = number
    return [(members, len(own)) for members, own in found], of


def _wanted_kinds(chosen: Chosen) -> NDArray[np.bool_]:
    kinds = schema.KINDS if chosen.kinds is None else chosen.kinds
    return np.array([kind in kinds for kind in schema.KINDS])


def _row_groups(path: Path) -> tuple[Ints, list[str]]:
    """Return where row groups begin, and the columns."""
    try:
        footer = pq.read_metadata(path)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error) from None
    sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
    begins = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)))
    return begins, footer.schema.to_arrow_schema().names


def _read_rows(file: _File, rows: Ints) -> Iterator[tuple[int, Row]]:
    """Yield rows of a file, which are named in ascending order, with their numbers."""
    group_of = np.searchsorted(file.groups, rows, side="right") - 1
    try:
        with parquet_file(file.path, page_checksum_verification=True) as parquet:
            names = set(schema.EVENT_COLUMNS.names) & set(parquet.schema_arrow.names)
            for group in np.unique(group_of):
                own = rows[group_of == group]
                table = parquet.read_row_group(int(group), columns=sorted(names))
                taken = table.take(pa.array(own - file.groups[group]))
                for number, row in zip(own, taken.to_pylist(), strict=True):
                    yield int(number), {**row, "event": file.kind}
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file.path, error) from None
