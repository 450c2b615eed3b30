"""Replaying a recorded run: the same code, told the same things, must ask for the same.

Each process is given what it was told (multicasts, packets, timers, choices, suspicions) in the
order of its steps. Its host keeps a journal as in any world, and the journal is one that compares
all that it is told with what was recorded. Whatever world recorded the run, and whatever its clock
said, the replay goes by steps.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.host import LATER, NEVER, Host, World
from flexgroup.core.journal import Journal, Transmission, send_detail
from flexgroup.core.layer import Notice, Store, Suspect, Trust, View
from flexgroup.core.message import Message, name_of
from flexgroup.core.stack import BuildStack
from flexgroup.trace import schema
from flexgroup.trace.history import is_only_told
from flexgroup.trace.reader import ints, messages, read_events
from flexgroup.trace.run import Run

InFlight = dict[tuple[int, int], Transmission]
"""What was sent, by who sent it and at which step."""


@dataclass(frozen=True)
class Replay:
    """How far the replay agreed with the recording."""

    events: int
    divergence: str | None


@dataclass(frozen=True, slots=True)
class _Row:
    kind: str
    step: int
    message: int
    peer: int
    sent: int
    packet: str | None
    header_bytes: int
    payload_bytes: int
    destinations: tuple[int, ...]
    detail: str | None

    @property
    def details(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.detail or "{}")
        return told

    def __str__(self) -> str:
        about = f" about {name_of(self.message)}" if self.message >= 0 else ""
        packet = f" {self.packet}" if self.packet else ""
        return f"{self.kind}{packet}{about}"


class _DivergenceError(Exception):
    pass


class _Comparison(Journal):
    """A journal that has been written already: what it is told must be the next row in it."""

    def __init__(self, process: int, rows: list[_Row]) -> None:
        self._process = process
        self._rows = rows
        self.position = 0

    @property
    def next(self) -> _Row | None:
        return self._rows[self.position] if self.position < len(self._rows) else None

    def confirm(self, agrees: bool, replayed: str) -> None:
        row = self.next
        if row is None:
            raise _DivergenceError(
                f"process {self._process}: the recording ends at step {len(self._rows) - 1}, "
                f"but the replay {replayed}"
            )
        if not agrees:
            raise _DivergenceError(
                f"process {self._process} step {row.step}: recorded {row}, replay {replayed}"
            )
        self.position += 1

    def multicast(self, process: int, step: int, time: int, m: Message) -> None:
        self.position += 1

    def receive(
        self,
        process: int,
        step: int,
        time: int,
        sender: int,
        transmission: Transmission,
        sent: int,
        queued: int,
    ) -> None:
        self.position += 1

    def send(
        self, process: int, step: int, time: int, target: int, transmission: Transmission
    ) -> None:
        row = self.next
        packet = transmission.packet
        agrees = row is not None and (
            row.kind == schema.SEND
            and target == row.peer
            and type(packet).__name__ == row.packet
            and transmission.message == row.message
            and transmission.header_bytes == row.header_bytes
            and send_detail(transmission) == row.detail
        )
        self.confirm(agrees, f"sends {type(packet).__name__} to {target}")

    def deliver(self, process: int, step: int, time: int, m: Message, depth: int) -> None:
        row = self.next
        agrees = row is not None and row.kind == schema.DELIVER and row.message == m.id
        self.confirm(agrees, f"delivers {name_of(m.id)}")

    def other(
        self, kind: int, process: int, step: int, time: int, peer: int, detail: str | None
    ) -> None:
        self.position += 1


class _Process(World):
    """One process being replayed, in a world where everything goes as it was recorded.

    Its clock counts the steps that are done.
    """

    def __init__(
        self,
        process: int,
        rows: list[_Row],
        build: BuildStack,
        codec: Codec,
        in_flight: InFlight,
        faulty: tuple[int, ...],
    ) -> None:
        self.process = process
        self._faulty = faulty
        self.journal = _Comparison(process, rows)
        self._build = build
        self._in_flight = in_flight
        self._host = Host(build(process), self, codec, self.journal)
        self._crashes = [row for row in rows if row.kind == schema.CRASH]
        self._expect_crash()

    def start(self) -> None:
        self._host.start(0)

    def advance(self) -> bool:
        """Go on as far as possible; whether that was anywhere at all."""
        start = self.journal.position
        row = self.journal.next
        while row is not None:
            if row.kind == schema.RECEIVE and (row.peer, row.sent) not in self._in_flight:
                break
            self._tell(row)
            row = self.journal.next
        return self.journal.position > start

    def _tell(self, row: _Row) -> None:
        host = self._host
        time = row.step + 1
        if row.kind == schema.RECEIVE:
            transmission = self._in_flight[row.peer, row.sent]
            if transmission.message != row.message:
                # It came over a network, where a packet does not tell what it is about.
                transmission = host.transmission(transmission.packet)
            try:
                host.receive(time, row.peer, transmission, row.sent)
            except PeerError:
                if row.peer not in self._faulty:
                    raise
                host.refused()
        elif row.kind == schema.MULTICAST:
            host.cast(time, Message(row.message, row.destinations, bytes(row.payload_bytes)))
        elif row.kind == schema.TIMER:
            level, name = row.details["level"], row.details["name"]
            if (level, name) not in host.timers:
                self.journal.confirm(False, f"has not set a timer '{name}'")
            host.timer(time, level, name)
        elif row.kind == schema.CHOICE and host.offers:
            host.choose(time, row.details["chosen"])
        elif row.kind == schema.SUSPECT:
            host.notice(time, _suspicion(row))
        elif row.kind == schema.VIEW:
            view = View(row.details["number"], tuple(row.details["members"]))
            if is_only_told(row.detail):
                host.notice(time, view)
            else:
                host.note(view)  # the world installed it, between stacks
        elif row.kind == schema.CRASH:
            host.crash(time)
            self._crashes.pop(0)
            self._expect_crash()
        elif row.kind == schema.RECOVER:
            host.recover(time, self._build(self.process))
        else:
            self.journal.confirm(False, "asks for nothing")

    def _expect_crash(self) -> None:
        self._host.crash_at = self._crashes[0].step - 1 if self._crashes else NEVER

    # What the host asks for.

    def on_send(self, host: Host, to: tuple[int, ...], transmission: Transmission) -> None:
        for target in to:
            if host.time > host.crash_at:
                return
            step = host.sent(target, transmission)
            host.time += 1
            self._in_flight[self.process, step] = transmission

    def on_deliver(self, host: Host, m: Message) -> None:
        host.time += 1

    def on_store(self, host: Host, effects: list[Store]) -> bool:
        # No row tells of it, so the crash does.
        return not self._crashes or host.stores < self._crashes[0].details.get("stored", 0)

    def on_notice(self, host: Host, notice: Notice) -> None:
        if isinstance(notice, View):
            host.time += 1

    def on_offer(self, host: Host, level: int, name: str, options: int) -> int:
        row = self.journal.next
        if row is None or row.kind != schema.CHOICE:
            return LATER
        host.time += 1
        chosen: int = row.details["chosen"]
        return chosen


def _suspicion(row: _Row) -> Notice:
    return Suspect(row.peer) if row.details["suspected"] else Trust(row.peer)


def replay(directory: Path, run: Run, build: BuildStack, codec: Codec) -> Replay:
    """Replay one run of a trace set; `build` makes the stack of a process."""
    in_flight: InFlight = {}
    processes = {
        process: _Process(process, rows, build, codec, in_flight, run.faulty)
        for process, rows in _rows_by_process(directory, run).items()
    }
    divergence = None
    try:
        _replay(processes)
    except _DivergenceError as error:
        divergence = str(error)
    return Replay(sum(process.journal.position for process in processes.values()), divergence)


def _replay(processes: dict[int, _Process]) -> None:
    for process in processes.values():
        process.start()
    waiting = set(processes)
    while waiting:
        moved = False
        for number in sorted(waiting):
            moved = processes[number].advance() or moved
            if processes[number].journal.next is None:
                waiting.discard(number)
        if waiting and not moved:
            stuck = processes[min(waiting)]
            row = stuck.journal.next
            assert row is not None
            raise _DivergenceError(
                f"process {stuck.process} step {row.step}: received a packet that process "
                f"{row.peer} never sent at its step {row.sent}"
            )


def _rows_by_process(directory: Path, run: Run) -> dict[int, list[_Row]]:
    by_process: dict[int, list[_Row]] = {}
    for kind in schema.KINDS:
        table = read_events(directory, run.run, kind)
        if table.num_rows == 0:
            continue
        rows = map(
            _Row,
            repeat(kind),
            ints(table, "step").tolist(),
            messages(table).tolist(),
            ints(table, "peer", -1).tolist(),
            ints(table, "sent", -1).tolist(),
            table.column("packet").to_pylist(),
            ints(table, "header_bytes").tolist(),
            ints(table, "payload_bytes").tolist(),
            [tuple(to or ()) for to in table.column("destinations").to_pylist()],
            table.column("detail").to_pylist(),
        )
        for process, row in zip(ints(table, "process").tolist(), rows, strict=True):
            by_process.setdefault(process, []).append(row)
    for process, own in by_process.items():
        own.sort(key=lambda row: row.step)
        steps = np.array([row.step for row in own])
        gaps = np.flatnonzero(steps != np.arange(len(own)))
        if len(gaps):
            raise UsageError(
                f"run '{run.run}': the history of process {process} is not whole at step "
                f"{gaps[0]}; replay needs every event from step 0 on"
            )
    return by_process
