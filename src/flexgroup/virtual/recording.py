"""What virtual servers record: kept in memory, judged as any trace, and written if wanted.

Servers record what they always do. Where they would hand it to a process that writes files, it is
kept here, with the same account of what is lost with a server that is killed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from flexgroup.core.journal import DELIVER, MULTICAST, RECEIVE, SEND, VIEW
from flexgroup.core.promises import UNIFORM
from flexgroup.properties.catalogue import check
from flexgroup.properties.kernels.grouping import runs
from flexgroup.properties.verdict import Outcome, Verdict
from flexgroup.server.recording.handoff import (
    AnyHanded,
    Events,
    Handoff,
    RunBegan,
    RunEnded,
)
from flexgroup.server.recording.trace_writer import KILLED, EndedRun
from flexgroup.trace import schema
from flexgroup.trace.history import (
    Deliveries,
    History,
    Ints,
    Lost,
    Multicasts,
    Packets,
    View,
    Views,
    by_pairs,
    lost_since,
    parse_view,
    views_of,
)
from flexgroup.trace.rows import COLUMNS, TYPES
from flexgroup.trace.run import Run, lost_processes
from flexgroup.trace.writer import DTYPES, event_tables, make_folders, write_part, write_run

SHARED_PROPERTIES = ("virtual synchrony",)
"""What servers promise for every stack, besides what the stack itself does."""


@dataclass
class Part:
    """What one server recorded of a run."""

    labels: list[tuple[str | None, str | None]] = field(default_factory=list)
    destination_sets: list[tuple[int, ...]] = field(default_factory=list)
    blocks: list[list[bytes]] = field(default_factory=list)
    mark: str = KILLED
    """How the run ended for this server; nothing may have come of its last events."""

    def columns(self) -> list[bytes]:
        return [b"".join(blocks) for blocks in zip(*self.blocks, strict=True)]

    def take_back(self, steps: int) -> None:
        """Only this much of the history of the process is so."""
        whole = []
        for block in self.blocks:
            read = [np.frombuffer(c, DTYPES[t]) for t, c in zip(TYPES, block, strict=True)]
            is_so = read[COLUMNS.index("step")] < steps
            whole.append([column[is_so].tobytes() for column in read])
        self.blocks = whole


@dataclass
class RecordedRun:
    """A domain in one configuration, as all its servers recorded it."""

    began: RunBegan
    parts: dict[str, Part] = field(default_factory=dict)
    """The parts of all servers, named as in files."""
    excluded: set[int] = field(default_factory=set)
    """Processes that did not go on to the next configuration."""

    def ended(self, server: str, missed: tuple[int, ...]) -> None:
        """The run is over at this server, which misses these in the next configuration."""
        own = self.began.servers.index(server)
        self.excluded.update((own,) if own in missed else missed)
        self.parts[server].mark = schema.CUT if missed else schema.COMPLETE

    @property
    def has_events(self) -> bool:
        return any(part.blocks for part in self.parts.values())

    def row(self) -> Run:
        """The row of the run, in which whoever was excluded is faulty, except where the stack has
        promises for those who fail, too."""
        began = self.began
        nothing = Part()
        marks = {server: self.parts.get(server, nothing).mark for server in began.servers}
        excluded = tuple(sorted(self.excluded))
        row = EndedRun(began.servers, excluded, began.run, math.inf, marks).row()
        is_uniform = UNIFORM in (row.promises or ())
        return row if is_uniform else replace(row, faulty=excluded)


class Recordings:
    """The runs that all servers of an execution have recorded."""

    def __init__(self) -> None:
        self._runs: dict[str, RecordedRun] = {}

    def take(self, server: str, handed: AnyHanded) -> None:
        if isinstance(handed, RunBegan):
            run = self._runs.setdefault(handed.run.run, RecordedRun(handed))
            if handed.steps and server in run.parts:
                before = run.parts.pop(server)
                before.take_back(handed.steps)
                run.parts[f"{server}-{len(run.parts)}"] = before
            run.parts[server] = Part()
        elif isinstance(handed, Events):
            part = self._runs[handed.run].parts[server]
            part.labels += handed.labels
            part.destination_sets += handed.destination_sets
            part.blocks.append(handed.columns)
        elif isinstance(handed, RunEnded):
            self._runs[handed.run].ended(server, handed.missed)

    @property
    def runs(self) -> list[RecordedRun]:
        """Where nothing was sent, there is nothing to judge."""
        return [run for run in self._runs.values() if run.has_events]

    def violations(self) -> Iterator[tuple[str, Verdict]]:
        """Each run, by name, that violates a property which its stack promises.

        Runs have nothing to do with each other, so all are judged as one whose processes are those
        of all of them; only if that one is bad they are told apart.
        """
        judged = [(run, run.row()) for run in self.runs]
        for complete in (True, False):
            chosen = [(run, row) for run, row in judged if row.complete == complete]
            if any(_violated(chosen)):
                for run, row in chosen:
                    for verdict in _violated([(run, row)]):
                        yield row.run, verdict

    def write(self, directory: Path) -> None:
        """Write them as a trace set."""
        make_folders(directory)
        for run in self.runs:
            name = run.began.run.run
            for server, part in run.parts.items():
                if part.blocks:
                    tables = event_tables(name, part.columns(), part.labels, part.destination_sets)
                    for kind, table in tables:
                        write_part(directory, kind, f"{name}@{server}.parquet", table)
            write_run(directory, run.row())


def _violated(judged: Sequence[tuple[RecordedRun, Run]]) -> Iterator[Verdict]:
    if judged:
        promised = judged[0][1].promises or ()
        for verdict in check(_Union(judged).history(), [*promised, *SHARED_PROPERTIES]):
            if verdict.outcome is Outcome.VIOLATED:
                yield verdict


class _Union:
    """Several runs as one: the processes of each are numbered after those of the one before."""

    def __init__(self, judged: Sequence[tuple[RecordedRun, Run]]) -> None:
        self._judged = judged
        self._labels: list[tuple[str | None, str | None]] = []
        self._sets: list[list[int]] = []
        columns: list[list[bytes]] = [[] for _ in COLUMNS]
        counts: list[int] = []
        shifts: list[tuple[int, int, int]] = []
        """The first process, label and set of destinations of each server's part."""
        self._views: dict[int, View] = {}
        self._first = [0]
        """The first process of each run."""
        for run, row in judged:
            process = self._first[-1]
            for part in run.parts.values():
                self._views |= self._views_in(part, process)
                shifts.append((process, len(self._labels), len(self._sets)))
                self._labels += part.labels
                self._sets += [[process + p for p in to] for to in part.destination_sets]
                counts.append(sum([len(block[0]) for block in part.blocks]) // 4)
                for column, more in zip(columns, zip(*part.blocks, strict=True), strict=False):
                    column += more
            self._first.append(process + row.processes)
        self._columns: dict[str, Ints] = {
            name: np.frombuffer(b"".join(column), DTYPES[type_]).astype(np.int64)
            for name, type_, column in zip(COLUMNS, TYPES, columns, strict=True)
        }
        shift = np.repeat(np.array(shifts, dtype=np.int64).reshape(-1, 3), counts, axis=0)
        at = self._columns
        at["process"] += shift[:, 0]
        at["peer"] += shift[:, 0]
        at["message"] = np.where(at["message"] < 0, -1, at["message"] + shift[:, 0])
        at["label"] += np.where(at["kind"] == MULTICAST, shift[:, 2], shift[:, 1])

    def _views_in(self, part: Part, process: int) -> dict[int, View]:
        """The views that labels tell of, by the number of the label."""
        found = {}
        for number, (packet, detail) in enumerate(part.labels, len(self._labels)):
            if packet is None and detail is not None and '"members"' in detail:
                view = parse_view(detail)
                found[number] = View(view.number, tuple(process + m for m in view.members))
        return found

    def history(self) -> History:
        multicasts = self._multicasts()
        names = [run.began.run.run for run, _ in self._judged]
        return History(
            names[0],
            self._first[-1],
            self._judged[0][1].complete,
            multicasts=multicasts,
            deliveries=Deliveries(**self._rows(DELIVER, "message", "depth")),
            sends=self._packets(SEND),
            receives=self._packets(RECEIVE),
            views=self._installed(),
            lost=self._lost(multicasts.message),
            faulty=self._in_all(row.faulty for _, row in self._judged),
        )

    def _rows(self, kind: int, *names: str) -> dict[str, Ints]:
        """These columns of the events of a kind, by process and step."""
        rows = np.flatnonzero(self._columns["kind"] == kind)
        rows = rows[by_pairs(self._columns["process"][rows], self._columns["step"][rows])]
        return {name: self._columns[name][rows] for name in ("process", "step", "time", *names)}

    def _multicasts(self) -> Multicasts:
        rows = self._rows(MULTICAST, "message", "label")
        label = rows.pop("label")
        ends = np.cumsum([0, *map(len, self._sets)])
        targets = np.array([p for to in self._sets for p in to], dtype=np.int64)
        at, _ = runs(ends[label], ends[label + 1])
        offsets = np.concatenate(([0], np.cumsum(ends[label + 1] - ends[label])))
        return Multicasts(**rows, offsets=offsets, targets=targets[at])

    def _packets(self, kind: int) -> Packets:
        rows = self._rows(kind, "message", "peer", "label", "depth")
        label = rows.pop("label")
        return Packets(
            **rows,
            packet=tuple([packet or "" for packet, _ in self._labels]),
            packet_code=label,
            detail=tuple([detail for _, detail in self._labels]),
            detail_code=label,
        )

    def _installed(self) -> Views:
        rows = self._rows(VIEW, "label")
        label = rows.pop("label")
        return views_of(**rows, installed=[self._views[number] for number in label.tolist()])

    def _lost(self, multicast: Ints) -> Lost:
        processes = self._in_all(lost_processes(row.lost) for _, row in self._judged)
        return lost_since(processes, multicast)

    def _in_all(self, processes: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
        """Processes of each run, as they are numbered here."""
        return tuple(
            first + process
            for first, of_run in zip(self._first, processes, strict=False)
            for process in of_run
        )


class Disk(Handoff):
    """Takes what one server records, as long as it works."""

    def __init__(self, recordings: Recordings, server: str) -> None:
        self._recordings = recordings
        self._server = server
        self._waiting: list[AnyHanded] = []
        self._waiting_bytes = 0
        self._is_stuck = False
        self._is_broken = False

    # What happens to it.

    def stick(self) -> None:
        """Take nothing for now."""
        self._is_stuck = True

    def fail(self) -> None:
        """Take nothing ever again."""
        self._is_broken = True
        self._waiting, self._waiting_bytes = [], 0

    def go_on(self) -> None:
        self._is_stuck = False

    # What a server does.

    @property
    def waiting_bytes(self) -> int:
        return self._waiting_bytes

    def put(self, handed: AnyHanded) -> None:
        if not self._is_broken:
            self._waiting.append(handed)
            if isinstance(handed, Events):
                self._waiting_bytes += sum(map(len, handed.columns))

    def push(self) -> None:
        if self._waiting and not self._is_stuck:
            for handed in self._waiting:
                self._recordings.take(self._server, handed)
            self._waiting, self._waiting_bytes = [], 0

    def close(self) -> None:
        self.push()
