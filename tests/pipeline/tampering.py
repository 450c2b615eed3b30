"""Ways to tamper with a correct run, somewhere in its middle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from flexgroup.core.message import MessageId
from flexgroup.properties.kernels.grouping import runs
from flexgroup.testing.large_runs import correct_run
from flexgroup.trace.history import Deliveries, History, Multicasts

PROCESSES = 8
DESTINATIONS = 4
ROOM = 16
"""Steps and times lie so far apart, for what is inserted between them."""

Row = tuple[int, int, MessageId]
"""Process, step and message; the step is also the time."""


@cache
def correct(deliveries: int, packets: bool = False) -> History:
    run = correct_run(deliveries // DESTINATIONS, PROCESSES, DESTINATIONS, True, packets)
    return replace(
        run,
        run="untampered" if packets else "correct",
        multicasts=replace(
            run.multicasts, step=(run.multicasts.step + 1) * ROOM, time=run.multicasts.time * ROOM
        ),
        deliveries=replace(
            run.deliveries, step=(run.deliveries.step + 1) * ROOM, time=run.deliveries.time * ROOM
        ),
        sends=replace(run.sends, step=(run.sends.step + 1) * ROOM),
        receives=replace(run.receives, step=(run.receives.step + 1) * ROOM),
    )


def delivering(history: History, added: list[Row], without: int | None = None) -> History:
    """With more deliveries, and without the one of this row."""
    rows = history.deliveries
    kept = np.arange(len(rows.process)) != (-1 if without is None else without)
    process, step, message = np.array(added, dtype=np.int64).reshape(-1, 3).T
    middle = int(rows.time.max()) // 2
    columns = [
        np.concatenate([old[kept], new])
        for old, new in (
            (rows.process, process),
            (rows.step, step),
            (rows.time, middle + step % ROOM),
            (rows.message, message),
        )
    ]
    order = np.lexsort((columns[1], columns[0]))
    return replace(history, deliveries=Deliveries(*(column[order] for column in columns)))


def multicasting(
    history: History, added: Sequence[tuple[Row, tuple[int, ...]]], when: int | None = None
) -> History:
    """With more multicasts, at this time or when the first was."""
    rows = history.multicasts
    process, step, message = np.array([row for row, _ in added], dtype=np.int64).T
    targets = np.concatenate([rows.targets, *(np.array(to) for _, to in added)])
    lengths = np.concatenate([np.diff(rows.offsets), [len(to) for _, to in added]])
    ends = np.cumsum(lengths)
    process = np.concatenate([rows.process, process])
    step = np.concatenate([rows.step, step])
    time = np.concatenate(
        [rows.time, np.full(len(added), rows.time.min() if when is None else when)]
    )
    message = np.concatenate([rows.message, message])
    order = np.lexsort((step, process))
    chosen, _ = runs((ends - lengths)[order], ends[order])
    offsets = np.concatenate([[0], np.cumsum(lengths[order])])
    return replace(
        history,
        multicasts=Multicasts(
            process[order], step[order], time[order], message[order], offsets, targets[chosen]
        ),
    )


def row_in_the_middle(history: History, process: int) -> int:
    """The row of the last delivery at the process in the first half of the run."""
    rows = history.deliveries
    start, end = np.searchsorted(rows.process, [process, process + 1])
    middle = rows.time.max() // 2
    return int(start + np.searchsorted(rows.time[start:end], middle)) - 1


def step_in_the_middle(history: History, process: int) -> int:
    return int(history.deliveries.step[row_in_the_middle(history, process)]) + 1


def destinations(history: History, message: MessageId) -> set[int]:
    row = int(np.flatnonzero(history.multicasts.message == message)[0])
    start, end = history.multicasts.offsets[row : row + 2]
    return set(history.multicasts.targets[start:end].tolist())


def keeping(history: History, kept: NDArray[np.bool_]) -> History:
    """With some of the deliveries only."""
    rows = history.deliveries
    columns = (rows.process, rows.step, rows.time, rows.message)
    return replace(history, deliveries=Deliveries(*(column[kept] for column in columns)))


def changed(history: History, message: MessageId, to: tuple[int, ...] | None) -> History:
    """With a message multicast to other processes, or not at all."""
    rows = history.multicasts
    row = int(np.flatnonzero(rows.message == message)[0])
    kept = np.arange(len(rows.message)) != row
    chosen, _ = runs(rows.offsets[:-1][kept], rows.offsets[1:][kept])
    lengths = np.diff(rows.offsets)[kept]
    rest = Multicasts(
        process=rows.process[kept],
        step=rows.step[kept],
        time=rows.time[kept],
        message=rows.message[kept],
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        targets=rows.targets[chosen],
    )
    history = replace(history, multicasts=rest)
    if to is None:
        return history
    sender, step = int(rows.process[row]), int(rows.step[row])
    return multicasting(history, [((sender, step, message), to)], int(rows.time[row]))
