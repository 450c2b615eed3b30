"""Made-up runs for tests of verification: correct ones, tampered ones, and plain nonsense."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from flexgroup.core.message import message_id, seq_of
from flexgroup.trace.history import History, lost_since
from flexgroup.trace.schema import CRASH, DELIVER, MULTICAST, RECEIVE, SEND, VIEW

from ..properties.histories import Event, history_of
from .written_histories import write_history


def nonsense(seed: int) -> History:
    """Events in an order that respects some promises and breaks others, by chance.

    No two events happen at the same time, so that the earliest violation is one and the same.
    """
    chance = random.Random(seed)
    processes = chance.randint(2, 5)
    senders = processes + chance.choice([0, 0, 3])
    sent = [0] * senders
    waiting: list[tuple[float, Event]] = []
    loss, doubled, stray, scatter = (
        chance.choice([0, 0.03]),
        chance.choice([0, 0.05]),
        chance.choice([0, 0.05]),
        chance.choice([0.01, 3, 30]),
    )
    for time in range(chance.randint(3, 25)):
        origin = chance.randrange(senders) if senders == processes else processes + time % 3
        size = chance.randint(1, processes)
        to = tuple(sorted(chance.sample(range(processes), size)))
        message = message_id(origin, sent[origin])
        sent[origin] += 1
        if chance.random() >= loss:
            waiting.append((time, Event(origin, MULTICAST, message, to)))
        for process in to:
            arrival = time + 4 + chance.random() * scatter
            if chance.random() < stray:
                process = chance.randrange(processes)
            waiting.append((time + 1, Event(origin, SEND, message, (process,))))
            waiting.append((arrival, Event(process, RECEIVE, message, (origin,))))
            if chance.random() >= loss:
                waiting.append((arrival + 0.1, Event(process, DELIVER, message)))
            if chance.random() < doubled:
                waiting.append((arrival + 5 * chance.random(), Event(process, DELIVER, message)))
    if chance.random() < 0.3:
        waiting.append((chance.random() * 30, Event(chance.randrange(processes), CRASH)))
    if chance.random() < 0.3:
        for number in range(3):
            everybody = tuple(range(processes))
            waiting += (
                (number * 10 + chance.random() * 3, Event(process, VIEW, number, everybody))
                for process in everybody
            )
    events = [event for _, event in sorted(waiting, key=lambda timed: timed[0])]
    history = history_of(events, processes, complete=chance.random() < 0.7)
    if chance.random() < 0.4:
        history = cut_off(events, processes, chance)
    faulty = (chance.randrange(processes),) if seed % 4 == 3 else ()
    history = replace(history, run=f"nonsense-{seed:03}", faulty=faulty)
    return history if seed % 2 else named(history)


def named(history: History) -> History:
    """As a log of another system, which has names for nodes and for most of its messages."""
    nodes = tuple(f"node {chr(ord('A') + number)}" for number in range(history.processes + 3))
    return replace(history, nodes=nodes, message_name=name_of_every_other)


def name_of_every_other(message: int) -> str | None:
    return f"order-{message:x}" if seq_of(message) % 2 == 0 else None


def cut_off(events: list[Event], processes: int, chance: random.Random) -> History:
    """The last events of a process are lost."""
    process = chance.randrange(processes)
    of_process = [place for place, event in enumerate(events) if event.process == process]
    lost = set(of_process[chance.randint(0, len(of_process)) :])
    rest = [event for place, event in enumerate(events) if place not in lost]
    history = history_of(rest, processes, complete=False)
    return replace(history, lost=lost_since([process], history.multicasts.message))


def write_all(directory: Path, histories: list[History], stack: str = "somebody else's") -> Path:
    for history in histories:
        write_history(directory, history, stack)
    return directory
