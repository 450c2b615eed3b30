"""The process that writes the trace of one server.

It is started as `python -m flexgroup.server.recording.trace_writer DIR SERVER`.

A process of its own, because a thread of a busy server hardly gets to run, and because what it was
told is written even if the server is killed.

Events are written every moment, so that a run can be watched while it goes on. The row in `runs`
comes when all servers of the run have said that they have written everything, or when those that
have not are not waited for any longer: the row then tells whose last events are lost. If a server
is killed, this process says so in its place.
"""

from __future__ import annotations

import math
import os
import select
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from flexgroup.server.recording.handoff import (
    AnyHanded,
    Events,
    RunBegan,
    RunEnded,
    ServerEnded,
    take_whole,
)
from flexgroup.trace import schema
from flexgroup.trace.run import Run, planned_liars, with_liars
from flexgroup.trace.under_way import is_under_way
from flexgroup.trace.writer import (
    STARTED,
    DestinationSets,
    Labels,
    as_json,
    event_tables,
    first_missing_step,
    keep_steps,
    run_file,
    write_part,
    write_run,
)
from flexgroup.wire.frames import MOST_BYTES_OF_SERVERS, FrameReader

LEAST_SECONDS = 1.0
"""Events are written this often."""

SHARE_OF_AGE = 1 / 1000
"""They are not written before this share of the run's time has passed: a run of a day would
otherwise be a hundred thousand files of each kind, and whoever reads it opens all of them."""

LATE_SECONDS = 5.0
"""A server that has not said that it has written everything is waited for this long."""

MOMENT = 0.1

ENDED = "ended"
"""The folder in which servers say that they have: a file of each, with how the run ended, and which
attack it made if it was started as an attacker."""

KILLED = "killed"
"""How it ended for a server that did not live to say anything: its last events are lost."""

LOST = "lost"
"""How it ended for a server that was killed together with whoever wrote its trace, as when a
machine loses power, and went on: some events are lost, and those that came later are left out."""


@dataclass
class OpenRun:
    """A run that is still being recorded."""

    servers: tuple[str, ...]
    description: Run
    began: float
    written: float
    labels: Labels = field(default_factory=list)
    destination_sets: DestinationSets = field(default_factory=list)
    unwritten: list[list[bytes]] = field(default_factory=list)
    parts: dict[str, int] = field(default_factory=dict)
    """How many files of each kind there are."""
    goes_on: bool = False
    """A server that was killed has recorded the beginning."""
    is_lost: bool = False
    """Not all of that was written, so what follows is left out."""

    def is_due(self, now: float) -> bool:
        return now - self.written >= max(LEAST_SECONDS, SHARE_OF_AGE * (now - self.began))


@dataclass
class EndedRun:
    """A run that is over at this server, and not listed yet."""

    servers: tuple[str, ...]
    missed: tuple[int, ...]
    """Processes that are not in the next configuration: they left, or were killed for good."""
    description: Run
    until: float
    """When it will be listed even if some have not said that they have written everything."""
    marks: dict[str, str] = field(default_factory=dict)
    """How it ended for the servers that have said so."""
    liars: set[str] = field(default_factory=set)
    """Those of them that are started as attackers, each as in `2:skip`."""

    @property
    def silent(self) -> list[int]:
        """The processes whose servers have not."""
        return [place for place, name in enumerate(self.servers) if name not in self.marks]

    def hear(self, place: int, mark: str) -> None:
        """The run has ended so for a server. One that was killed, and is there all the same, has
        started again: it is about to say something else."""
        how, *liars = mark.split()
        self.liars.update(liars)
        if how != KILLED or place in self.missed:
            self.marks[self.servers[place]] = how

    @property
    def lost(self) -> list[int]:
        """The processes whose last events nobody is going to write.

        If no other server has said anything, they may all write into folders of their own. Then
        those that go on are trusted to do so.
        """
        is_shared = len(self.marks) > 1
        silent = [process for process in self.silent if is_shared or process in self.missed]
        names = enumerate(self.servers)
        named = [p for p, name in names if self.marks.get(name) in (KILLED, LOST)]
        return sorted([*silent, *named])

    def row(self) -> Run:
        lost = self.lost
        # A server that was cut off does not know that the others went on with it for a moment.
        is_complete = all(how == schema.COMPLETE for how in self.marks.values()) and not lost
        return replace(
            with_liars(self.description, self.liars),
            outcome=schema.COMPLETE if is_complete else schema.CUT,
            lost=as_json(lost) if lost else None,
        )


class ServerTraceWriter:
    """Writes what one server tells."""

    def __init__(self, directory: Path, server: str) -> None:
        self._directory = directory
        self._server = server
        self._open: dict[str, OpenRun] = {}
        self._ended: list[EndedRun] = []
        self._closed: ServerEnded | None = None

    def take(self, handed: AnyHanded, now: float) -> None:
        if isinstance(handed, RunBegan):
            run = OpenRun(handed.servers, handed.run, now, now)
            self._open[handed.run.run] = run
            if handed.steps:
                self._go_on(run, handed.steps)
        elif isinstance(handed, Events):
            run = self._open[handed.run]
            self._describe(STARTED, replace(run.description, outcome=schema.RUNNING))
            run.labels += handed.labels
            run.destination_sets += handed.destination_sets
            run.unwritten.append(handed.columns)
        elif isinstance(handed, RunEnded):
            self._end(handed, now)
        else:
            self._closed = handed

    def write_what_is_due(self, now: float) -> None:
        for name, run in self._open.items():
            if run.unwritten and run.is_due(now):
                self._write(name, run)
                run.written = now
        self._ended = [run for run in self._ended if not self._is_settled(run, now)]

    def close(self, now: float) -> None:
        """The server has ended, in whatever way. Runs that wait for other servers are listed by
        those that go on; if there are none, they are waited for."""
        if self._closed is None:
            for name, run in self._open.items():
                self._write(name, run)
                self._mark(run.description, KILLED)
                # Whoever ends as well is not there any more, either.
                everybody = tuple(range(len(run.servers)))
                self._ended.append(EndedRun(run.servers, everybody, run.description, math.inf))
            self._open = {}
        self.write_what_is_due(now)
        while self._closed is not None and self._closed.is_last and self._ended:
            time.sleep(MOMENT)
            self.write_what_is_due(time.monotonic())

    def _go_on(self, run: OpenRun, steps: int) -> None:
        """Take back what was written of the process from this step on, and that its part has ended,
        once whoever wrote it is done. If that was killed as well, and something is missing before,
        all that follows is lost: readers rely on histories without holes."""
        name = run.description.run
        run.goes_on = True
        mark = self._directory / ENDED / f"{name}@{self._server}"
        until = time.monotonic() + LATE_SECONDS
        while not mark.exists() and time.monotonic() < until:
            time.sleep(MOMENT)
        mark.unlink(missing_ok=True)
        prefix = f"{name}@{self._server}-"
        self._keep(run, prefix, steps)
        missing = first_missing_step(self._directory, prefix, steps)
        if missing < steps:
            run.is_lost = True
            self._keep(run, prefix, missing)

    def _keep(self, run: OpenRun, prefix: str, steps: int) -> None:
        for kind in schema.KINDS:
            run.parts[kind] = keep_steps(self._directory, kind, prefix, steps)

    def _write(self, name: str, run: OpenRun) -> None:
        if run.is_lost:
            run.unwritten = []
        if not run.unwritten:
            return
        if run.goes_on:  # who was killed with all others may have listed it
            (self._directory / "runs" / run_file(name)).unlink(missing_ok=True)
        columns = [b"".join(blocks) for blocks in zip(*run.unwritten, strict=True)]
        run.unwritten = []
        for kind, table in event_tables(name, columns, run.labels, run.destination_sets):
            number = run.parts.get(kind, 0)
            write_part(self._directory, kind, f"{name}@{self._server}-{number:06}.parquet", table)
            run.parts[kind] = number + 1

    def _end(self, handed: RunEnded, now: float) -> None:
        """Say that this server has written everything about a run."""
        run = self._open.pop(handed.run)
        self._write(handed.run, run)
        how = schema.CUT if handed.missed else schema.COMPLETE
        self._mark(run.description, LOST if run.is_lost else how)
        self._ended.append(
            EndedRun(run.servers, handed.missed, run.description, now + LATE_SECONDS)
        )

    def _mark(self, run: Run, how: str) -> None:
        """Leave word of that for other servers to see, and of what is an attack of this one."""
        making = self._directory / ENDED / f"_{run.run}@{self._server}"
        making.write_text(" ".join([how, *planned_liars(run.faults)]))
        making.replace(making.with_name(making.name[1:]))

    def _is_settled(self, run: EndedRun, now: float) -> bool:
        for place in run.silent:
            mark = self._directory / ENDED / f"{run.description.run}@{run.servers[place]}"
            if mark.exists():
                run.hear(place, mark.read_text())
        if run.silent and now < run.until:
            return False
        # If nothing was sent at any server, it is not worth a run.
        if (self._directory / STARTED / run_file(run.description.run)).exists():
            self._describe("runs", self._row(run))
        return True

    def _row(self, run: EndedRun) -> Run:
        """How a run has ended, as all have recorded it. Replicas stop where they are when somebody
        destroys their groups: other than at a change, nobody waits for what is under way."""
        row, name = run.row(), run.description.run
        if row.complete and row.replicas:
            told = [place for place, server in enumerate(run.servers) if server in run.marks]
            if is_under_way(self._directory, name, told):
                return replace(row, outcome=schema.CUT)
        return row

    def _describe(self, folder: str, run: Run) -> None:
        """Write the row of a run, unless another server was faster that knows as much: who are
        attackers, only they know until they have said so."""
        if run.faulty or not (self._directory / folder / run_file(run.run)).exists():
            write_run(self._directory, run, folder, writer=f"{self._server}-")


def main(directory: Path, server: str, source: int) -> None:
    """Write until the source ends."""
    writer = ServerTraceWriter(directory, server)
    received = FrameReader(MOST_BYTES_OF_SERVERS)
    while True:
        readable, _, _ = select.select([source], [], [], MOMENT)
        more = os.read(source, 1 << 20) if readable else b""
        if readable and not more:
            break
        received.feed(more)
        for handed in take_whole(received):
            writer.take(handed, time.monotonic())
        writer.write_what_is_due(time.monotonic())
    writer.close(time.monotonic())


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), sys.argv[2], sys.stdin.fileno())
    except OSError as error:
        sys.exit(f"the trace of {sys.argv[2]} cannot be written any more: {error}")
