"""Rows of events are compared with what the schema says of them, one batch after the other."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexgroup.core.errors import UsageError
from flexgroup.core.journal import BY_ADAPTER
from flexgroup.trace import schema
from flexgroup.trace.history import Ints, by_key, parse_view
from flexgroup.trace.reader import ints
from flexgroup.trace.rules import broken_rules
from flexgroup.trace.rules import rows_told as rows
from flexgroup.trace.run import Run, lost_processes
from flexgroup.trace.validate.integers import Flags, IntegerSet
from flexgroup.trace.validate.problems import Place


@dataclass
class RunSeen:
    """What the validator has seen of one run so far."""

    described: Run | None
    steps: dict[int, IntegerSet] = field(default_factory=dict)
    sends: dict[int, IntegerSet] = field(default_factory=dict)
    multicasts: dict[int, IntegerSet] = field(default_factory=dict)
    latest: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    """The last step and its time, by kind of event and process."""
    unread: bool = False
    """Some rows could not be read: then what is missing proves nothing."""


def check_cells(place: Place, kind: str, batch: pa.RecordBatch) -> Flags:
    """Check each cell on its own, and return which rows say of which event they tell."""
    sound = np.ones(batch.num_rows, dtype=np.bool_)
    for broken in broken_rules(kind, batch):
        place.error(broken.reason)
        if not schema.EVENT_COLUMNS.field(broken.column).nullable:
            sound &= ~broken.rows
    if kind == schema.VIEW:
        for text in batch.column("detail").unique().to_pylist():
            try:
                parse_view(text)
            except UsageError as error:
                place.error(str(error))
    return sound


def check_rows(place: Place, kind: str, seen: RunSeen, batch: pa.RecordBatch) -> None:
    """Check the rows of one run against what was seen of it before."""
    process, step = ints(batch, "process", -1), ints(batch, "step", -1)
    if seen.described is not None:
        _check_numbers(place, kind, seen.described, process, batch)
    by_adapter = _sent_by_adapters(kind, batch)
    for number, chosen in by_key(process):
        chosen = chosen[np.argsort(step[chosen], kind="stable")]
        own, time = step[chosen], ints(batch, "time", -1)[chosen]
        repeated = seen.steps.setdefault(number, IntegerSet()).add(own)
        if repeated.any():
            place.error(
                f"process {number} has {_times(repeated)} a step that it had before, "
                f"step {own[repeated][0]} the first"
            )
        in_turn = ~by_adapter[chosen]
        if in_turn.any():
            _check_times(place, seen, (kind, number), own[in_turn], time[in_turn])
        if kind == schema.SEND:
            seen.sends.setdefault(number, IntegerSet()).add(own)
    if kind == schema.MULTICAST:
        _check_multicasts(place, seen, process, batch)
    if kind == schema.RECEIVE and seen.sends and not seen.unread and "sent" in batch.schema.names:
        _check_receives(place, seen, batch)


def _check_numbers(place: Place, kind: str, run: Run, process: Ints, batch: pa.RecordBatch) -> None:
    known = run.processes + run.clients
    if process.max() >= known:
        place.warning(
            f"process {process.max()}, and `runs` tells of {run.processes} processes and "
            f"{run.clients} clients, numbered to {known - 1}"
        )
    if kind == schema.MULTICAST:
        largest = pc.max(batch.column("destinations").flatten()).as_py()
        if largest is not None and largest >= run.processes:
            place.warning(
                f"destination {largest}, and processes are numbered to {run.processes - 1}"
            )


def _sent_by_adapters(kind: str, batch: pa.RecordBatch) -> Flags:
    """Tell which packets were not sent by processors, whose time they need not follow."""
    if kind != schema.SEND or "detail" not in batch.schema.names:
        return np.zeros(batch.num_rows, dtype=bool)
    told = pc.equal(batch.column("detail").cast(pa.string()), BY_ADAPTER)
    flags: Flags = pc.fill_null(told, False).to_numpy(zero_copy_only=False)
    return flags


def _check_times(
    place: Place, seen: RunSeen, whose: tuple[str, int], step: Ints, time: Ints
) -> None:
    """Warn of times that go back among rows of one kind: a hint, since orders go by steps."""
    before = seen.latest.get(whose)
    if before is not None and before[0] < step[0]:
        step, time = np.append(before[0], step), np.append(before[1], time)
    back = np.flatnonzero(time[1:] < time[:-1])
    if len(back):
        place.warning(
            f"the time of process {whose[1]} goes back {_times(back)}, first between its steps "
            f"{step[back[0]]} and {step[back[0] + 1]}; orders go by steps"
        )
    seen.latest[whose] = (int(step[-1]), int(time[-1]))


def _check_multicasts(place: Place, seen: RunSeen, process: Ints, batch: pa.RecordBatch) -> None:
    origin, seq = ints(batch, "origin", -1), ints(batch, "seq", -1)
    told = (origin >= 0) & (seq >= 0)
    process, origin, seq = process[told], origin[told], seq[told]
    strange = np.flatnonzero(origin != process)
    if len(strange):
        place.warning(
            f"{rows(len(strange))} of a message whose origin is another process: process "
            f"{process[strange[0]]} multicast {origin[strange[0]]}.{seq[strange[0]]}"
        )
    for number, chosen in by_key(origin):
        own = np.sort(seq[chosen])
        repeated = seen.multicasts.setdefault(number, IntegerSet()).add(own)
        if repeated.any():
            place.error(
                f"{rows(int(np.count_nonzero(repeated)))} of a message that was multicast before, "
                f"{number}.{own[repeated][0]} the first"
            )


def _check_receives(place: Place, seen: RunSeen, batch: pa.RecordBatch) -> None:
    if seen.described is None:
        return  # it may still be written, by each server in its own time
    told = batch.filter(pc.and_(batch.column("peer").is_valid(), batch.column("sent").is_valid()))
    lost = lost_processes(seen.described.lost)
    peer, sent = ints(told, "peer", -1), ints(told, "sent", -1)
    nothing = IntegerSet()
    for number, chosen in by_key(peer):
        wrong = ~seen.sends.get(number, nothing).holds(sent[chosen])
        if wrong.any() and number not in lost:
            place.error(
                f"{rows(int(np.count_nonzero(wrong)))} of packets that process {number} did not "
                f"send: it sent nothing at step {sent[chosen][wrong][0]}"
            )


def _times(which: Flags | Ints) -> str:
    number = int(np.count_nonzero(which)) if which.dtype == np.bool_ else len(which)
    return "once" if number == 1 else f"{number} times"
