"""One thing changed in a correct run, somewhere in its middle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from flexgroup.core.message import MessageId, message_id
from flexgroup.properties.kernels.grouping import runs
from flexgroup.testing.large_runs import correct_run
from flexgroup.trace.history import Deliveries, History, Multicasts

PROCESSES = 8
DESTINATIONS = 4
ROOM = 16
"""Steps and times lie so far apart, for what is inserted between them."""

Row = tuple[int, int, MessageId]
"""Process, step and message; the step is also the time."""


@dataclass(frozen=True)
class Tampered:
    history: History
    violated: str
    """The property that must be found violated."""
    messages: frozenset[MessageId]
    """The messages of the witness."""


@cache
def correct(deliveries: int, packets: bool = False) -> History:
    run = correct_run(deliveries // DESTINATIONS, PROCESSES, DESTINATIONS, True, packets)
    return replace(
        run,
        run="untampered" if packets else "correct",
        multicasts=replace(
            run.multicasts, step=run.multicasts.step * ROOM, time=run.multicasts.time * ROOM
        ),
        deliveries=replace(
            run.deliveries, step=run.deliveries.step * ROOM, time=run.deliveries.time * ROOM
        ),
        sends=replace(run.sends, step=run.sends.step * ROOM),
        receives=replace(run.receives, step=run.receives.step * ROOM),
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


def multicasting(history: History, added: Sequence[tuple[Row, tuple[int, ...]]]) -> History:
    rows = history.multicasts
    process, step, message = np.array([row for row, _ in added], dtype=np.int64).T
    targets = np.concatenate([rows.targets, *(np.array(to) for _, to in added)])
    lengths = np.concatenate([np.diff(rows.offsets), [len(to) for _, to in added]])
    ends = np.cumsum(lengths)
    process = np.concatenate([rows.process, process])
    step = np.concatenate([rows.step, step])
    time = np.concatenate([rows.time, np.full(len(added), rows.time[len(rows.time) // 2])])
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


def swapped(deliveries: int) -> Tampered:
    """Two deliveries of process 3 swapped, of messages that another process delivers too."""
    history = correct(deliveries)
    rows, row = history.deliveries, row_in_the_middle(correct(deliveries), 3)
    while True:
        one, other = (int(rows.message[place]) for place in (row, row + 1))
        if len(destinations(history, one) & destinations(history, other)) > 1:
            break
        row += 1
    message = rows.message.copy()
    message[[row, row + 1]] = other, one
    tampered = replace(history, run="swapped", deliveries=replace(rows, message=message))
    return Tampered(tampered, "acyclic order", frozenset({one, other}))


def cycle(deliveries: int) -> Tampered:
    """Three processes, three messages; no two processes share two of them."""
    history = correct(deliveries)
    a, b, c = (message_id(client, 0) for client in (900, 901, 902))
    sent = [((900, 0, a), (0, 2)), ((901, 0, b), (0, 1)), ((902, 0, c), (1, 2))]
    at = {process: step_in_the_middle(history, process) for process in range(3)}
    delivered = [
        (0, at[0], a), (0, at[0] + 1, b), (1, at[1], b), (1, at[1] + 1, c),
        (2, at[2], c), (2, at[2] + 1, a),
    ]  # fmt: skip
    tampered = delivering(multicasting(history, sent), delivered)
    return Tampered(replace(tampered, run="cycle"), "acyclic order", frozenset({a, b, c}))


def duplicate(deliveries: int) -> Tampered:
    history = correct(deliveries)
    row = row_in_the_middle(history, 5)
    message = int(history.deliveries.message[row])
    again = [(5, int(history.deliveries.step[row]) + 3, message)]
    tampered = delivering(history, again)
    return Tampered(replace(tampered, run="duplicate"), "integrity", frozenset({message}))


def lost(deliveries: int) -> Tampered:
    history = correct(deliveries)
    row = row_in_the_middle(history, 5)
    message = int(history.deliveries.message[row])
    tampered = delivering(history, [], without=row)
    return Tampered(replace(tampered, run="lost"), "agreement", frozenset({message}))


def never_sent(deliveries: int) -> Tampered:
    history = correct(deliveries)
    message = message_id(900, 7)
    tampered = delivering(history, [(2, step_in_the_middle(history, 2), message)])
    return Tampered(replace(tampered, run="never-sent"), "integrity", frozenset({message}))


def stray(deliveries: int) -> Tampered:
    """A message delivered where it was not meant to go."""
    history = correct(deliveries)
    row = row_in_the_middle(history, 2)
    while 6 in destinations(history, int(history.deliveries.message[row])):
        row += 1
    message = int(history.deliveries.message[row])
    tampered = delivering(history, [(6, step_in_the_middle(history, 6), message)])
    return Tampered(replace(tampered, run="stray"), "integrity", frozenset({message}))


def causal_inversion(deliveries: int) -> Tampered:
    """Process 0 answers a question; process 1 delivers the answer and only then the question."""
    history = correct(deliveries)
    question, answer = message_id(900, 0), message_id(0, 1 << 30)
    at = {process: step_in_the_middle(history, process) for process in range(3)}
    sent = [((900, 0, question), (0, 1)), ((0, at[0] + 1, answer), (1, 2))]
    delivered = [
        (0, at[0], question), (1, at[1], answer), (1, at[1] + 1, question), (2, at[2], answer),
    ]  # fmt: skip
    tampered = delivering(multicasting(history, sent), delivered)
    return Tampered(
        replace(tampered, run="causal-inversion"), "causal order", frozenset({question, answer})
    )


def outsider(deliveries: int) -> Tampered:
    """A process that a message does not concern sends a packet about it."""
    history = correct(deliveries, packets=True)
    row = row_in_the_middle(history, 2)
    while 7 in destinations(history, int(history.deliveries.message[row])):
        row += 1
    message = int(history.deliveries.message[row])
    sends = history.sends
    packets = replace(
        sends,
        process=np.append(sends.process, 7),
        step=np.append(sends.step, step_in_the_middle(history, 7)),
        time=np.append(sends.time, sends.time.max() // 2),
        message=np.append(sends.message, message),
        peer=np.append(sends.peer, 2),
        packet_code=np.append(sends.packet_code, 0),
    )
    return Tampered(
        replace(history, run="outsider", sends=packets), "minimality", frozenset({message})
    )


TAMPERINGS = (
    swapped, cycle, duplicate, lost, never_sent, stray, causal_inversion, outsider,
)  # fmt: skip
