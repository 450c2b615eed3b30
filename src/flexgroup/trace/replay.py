"""Replaying a recorded run: the same code, told the same things, must ask for the same.

Each process is given what it was told (multicasts, packets, timers, choices, suspicions)
in the order of its steps, and what its stack asks for is compared with what was recorded.
Whatever world recorded the run, and whatever its clock said, the replay goes by steps.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from flexgroup.core.codec import Codec
from flexgroup.core.errors import UsageError
from flexgroup.core.layer import (
    Deliver,
    Effect,
    Notice,
    Offer,
    Save,
    Send,
    Stored,
    Suspect,
    Trust,
)
from flexgroup.core.message import Message, Packet, message_id, name_of
from flexgroup.core.stack import Stack
from flexgroup.trace import schema
from flexgroup.trace.reader import ints, read_events
from flexgroup.trace.run import Run

BuildStack = Callable[[int], Stack]

_READ = (
    schema.MULTICAST,
    schema.SEND,
    schema.RECEIVE,
    schema.DELIVER,
    schema.TIMER,
    schema.CHOICE,
    schema.SUSPECT,
    schema.CRASH,
    schema.RECOVER,
    schema.VIEW,
)


@dataclass(frozen=True)
class Replay:
    """How far the replay agreed with the recording."""

    events: int
    divergence: str | None


@dataclass(frozen=True, slots=True)
class _Row:
    step: int
    kind: str
    message: int
    peer: int
    sent: int
    packet: str | None
    header_bytes: int
    payload_bytes: int
    destinations: tuple[int, ...]
    detail: str | None


class _DivergenceError(Exception):
    pass


class _Process:
    """One process being replayed."""

    def __init__(self, process: int, stack: Stack, rows: list[_Row]) -> None:
        self.process = process
        self.stack = stack
        self.rows = rows
        self.position = 0
        self.asked: list[Effect | tuple[int, Packet]] = []
        """What the stack asked for and the recording has not confirmed yet."""
        self.saved: list[Stored] = [None] * len(stack.layers)

    def collect(self) -> None:
        for effect in self.stack.take_effects():
            if isinstance(effect, Send):
                self.asked.extend((target, effect.packet) for target in effect.to)
            elif isinstance(effect, Deliver | Offer):
                self.asked.append(effect)
            elif isinstance(effect, Save):
                self.saved[effect.level] = effect.value


def replay(directory: Path, run: Run, build: BuildStack, codec: Codec) -> Replay:
    """Replay one run of a trace set; `build` makes the stack of a process."""
    processes = {
        process: _Process(process, build(process), rows)
        for process, rows in _rows_by_process(directory, run).items()
    }
    in_flight: dict[tuple[int, int], Packet] = {}
    for process in processes.values():
        process.stack.start()
        process.collect()
    waiting = set(processes)
    try:
        while waiting:
            moved = False
            for number in sorted(waiting):
                moved = _advance(processes[number], in_flight, build, codec) or moved
                if processes[number].position == len(processes[number].rows):
                    _finish(processes[number])
                    waiting.discard(number)
            if waiting and not moved:
                stuck = processes[min(waiting)]
                row = stuck.rows[stuck.position]
                raise _DivergenceError(
                    f"process {stuck.process} step {row.step}: received a packet that process "
                    f"{row.peer} never sent at its step {row.sent}"
                )
    except _DivergenceError as divergence:
        return Replay(sum(process.position for process in processes.values()), str(divergence))
    return Replay(sum(process.position for process in processes.values()), None)


def _finish(process: _Process) -> None:
    """The recorded history ends here, so the replay must have nothing left to ask for."""
    crashed = process.rows and process.rows[-1].kind == schema.CRASH
    if process.asked and not crashed:
        raise _DivergenceError(
            f"process {process.process}: the recording ends at step {len(process.rows) - 1}, but "
            f"the replay asks for {len(process.asked)} more effects"
        )


def _advance(
    process: _Process,
    in_flight: dict[tuple[int, int], Packet],
    build: BuildStack,
    codec: Codec,
) -> bool:
    """Go on with one process as far as possible; whether it moved at all."""
    start = process.position
    while process.position < len(process.rows):
        row = process.rows[process.position]
        if row.kind == schema.RECEIVE and (row.peer, row.sent) not in in_flight:
            break
        if row.kind in (schema.SEND, schema.DELIVER, schema.CHOICE):
            _confirm(process, row, in_flight, codec)
        else:
            _tell(process, row, in_flight, build)
        process.position += 1
    return process.position > start


def _confirm(
    process: _Process, row: _Row, in_flight: dict[tuple[int, int], Packet], codec: Codec
) -> None:
    asked = process.asked.pop(0) if process.asked else None
    recorded = f"process {process.process} step {row.step}: recorded {_told(row)}"
    if row.kind == schema.SEND and isinstance(asked, tuple):
        target, packet = asked
        measure = codec.measure(packet)
        same = (
            target == row.peer
            and type(packet).__name__ == row.packet
            and measure.about == row.message
            and measure.header_bytes == row.header_bytes
            and packet.detail() == row.detail
        )
        if not same:
            raise _DivergenceError(f"{recorded}, replay sends {type(packet).__name__} to {target}")
        in_flight[process.process, row.step] = packet
    elif row.kind == schema.DELIVER and isinstance(asked, Deliver):
        if asked.message.id != row.message:
            raise _DivergenceError(f"{recorded}, replay delivers {name_of(asked.message.id)}")
    elif row.kind == schema.CHOICE and isinstance(asked, Offer):
        chosen = json.loads(row.detail or "{}")["chosen"]
        process.stack.choose(asked.level, asked.name, chosen)
        process.collect()
    else:
        instead = "asks for nothing" if asked is None else "asks for something else"
        raise _DivergenceError(f"{recorded}, replay {instead}")


def _tell(
    process: _Process,
    row: _Row,
    in_flight: dict[tuple[int, int], Packet],
    build: BuildStack,
) -> None:
    if process.asked and row.kind not in (schema.CRASH, schema.RECOVER):
        raise _DivergenceError(
            f"process {process.process} step {row.step}: recorded {_told(row)}, but the replay "
            f"asks for {len(process.asked)} more effects before that"
        )
    stack = process.stack
    if row.kind == schema.VIEW:
        return  # the world changed it, between stacks
    if row.kind == schema.RECEIVE:
        stack.receive(row.peer, in_flight[row.peer, row.sent])
    elif row.kind == schema.MULTICAST:
        stack.cast(Message(row.message, row.destinations, bytes(row.payload_bytes)))
    elif row.kind == schema.TIMER:
        timer = json.loads(row.detail or "{}")
        stack.timer(timer["level"], timer["name"])
    elif row.kind == schema.SUSPECT:
        suspected = json.loads(row.detail or "{}")["suspected"]
        notice: Notice = Suspect(row.peer) if suspected else Trust(row.peer)
        stack.notice(notice)
    elif row.kind == schema.CRASH:
        process.asked.clear()
        return
    elif row.kind == schema.RECOVER:
        process.asked.clear()
        process.stack = build(process.process)
        process.stack.restart(process.saved)
    process.collect()


def _told(row: _Row) -> str:
    about = f" about {name_of(row.message)}" if row.message >= 0 else ""
    packet = f" {row.packet}" if row.packet else ""
    return f"{row.kind}{packet}{about}"


def _rows_by_process(directory: Path, run: Run) -> dict[int, list[_Row]]:
    by_process: dict[int, list[_Row]] = {}
    for kind in _READ:
        table = read_events(directory, run.run, kind)
        if table.num_rows == 0:
            continue
        origin = ints(table, "origin", -1).tolist()
        seq = ints(table, "seq").tolist()
        columns = (
            ints(table, "process").tolist(),
            ints(table, "step").tolist(),
            [message_id(o, s) if o >= 0 else -1 for o, s in zip(origin, seq, strict=True)],
            ints(table, "peer", -1).tolist(),
            ints(table, "sent", -1).tolist(),
            table.column("packet").to_pylist(),
            ints(table, "header_bytes").tolist(),
            ints(table, "payload_bytes").tolist(),
            table.column("destinations").to_pylist(),
            table.column("detail").to_pylist(),
        )
        for process, step, message, peer, sent, packet, header, payload, to, detail in zip(
            *columns, strict=True
        ):
            by_process.setdefault(process, []).append(
                _Row(
                    step,
                    kind,
                    message,
                    peer,
                    sent,
                    packet,
                    header,
                    payload,
                    tuple(to or ()),
                    detail,
                )
            )
    for process, rows in by_process.items():
        rows.sort(key=lambda row: row.step)
        steps = np.array([row.step for row in rows])
        gaps = np.flatnonzero(steps != np.arange(len(rows)))
        if len(gaps):
            raise UsageError(
                f"run '{run.run}': the history of process {process} is not whole at step "
                f"{gaps[0]}; replay needs every event from step 0 on"
            )
    return by_process
