"""Local and pairwise total order (Hadzilacos & Toueg 1994), for any process, correct or not.

- Local order: if two processes both deliver two messages that have the same destinations, they
  deliver them in the same order.
- Pairwise order: if two processes both deliver two messages, they deliver them in the same order.

Violations are counted in pairs of processes that disagree. Two messages in opposite orders are
a cycle of length two, so nothing outside the cyclic components of the head merge is looked at,
and nothing at all if there is none.
"""

from __future__ import annotations

import numpy as np

from flexgroup.properties.explanations import Letters, at, holds, violated
from flexgroup.properties.indexed_history import NONE, IndexedHistory
from flexgroup.properties.kernels.disagreement import Disagreements
from flexgroup.properties.kernels.grouping import distinct
from flexgroup.properties.verdict import Step, Verdict
from flexgroup.trace.history import Ints

LOCAL = "local order"
PAIRWISE = "pairwise order"


def check_local(run: IndexedHistory) -> Verdict:
    return judge(run, LOCAL, opposed_locally(run))


def check_pairwise(run: IndexedHistory) -> Verdict:
    return judge(run, PAIRWISE, run.opposed)


def opposed_locally(run: IndexedHistory) -> Disagreements:
    """Find the disagreements on messages that have the same destinations."""
    queues = run.cyclic.chosen(run.multicast_row[run.cyclic.message] != NONE)
    messages = distinct(queues.message)
    label = np.zeros(run.message_count, dtype=np.int64)
    label[messages] = _destination_sets(run, messages)
    return run.opposed_among(queues, label)


def _destination_sets(run: IndexedHistory, messages: Ints) -> list[int]:
    """Return a number for each message, equal for messages that have the same destinations."""
    starts = np.searchsorted(run.copies.message, messages).tolist()
    ends = np.searchsorted(run.copies.message, messages, side="right").tolist()
    processes = run.copies.process.tolist()
    numbers: dict[tuple[int, ...], int] = {}
    return [
        numbers.setdefault(tuple(processes[start:end]), len(numbers))
        for start, end in zip(starts, ends, strict=True)
    ]


def judge(run: IndexedHistory, name: str, found: Disagreements) -> Verdict:
    """Return the verdict, with a violation for each pair of processes that disagree."""
    if len(found.first) == 0:
        return holds(run, name)
    return violated(run, name, len(found.first), *evidence(run, found))


def evidence(run: IndexedHistory, found: Disagreements) -> tuple[list[Step], list[str]]:
    """Return the earliest disagreement: its events, and the lines that tell it."""
    rows = earliest(run, found)
    letter = Letters(run, [int(run.delivered[row]) for row in rows[:2]])
    a, b, other_a, other_b = (run.delivery(row) for row in rows)
    lines = [
        letter.let(),
        f"{run.node(a.process)} delivered a {at(a)} and then b {at(b)}",
        f"{run.node(other_b.process)} delivered b {at(other_b)} and then a {at(other_a)}",
    ]
    return [a, b, other_b, other_a], lines


def earliest(run: IndexedHistory, found: Disagreements) -> list[int]:
    """Return the four rows of the disagreement that was complete first."""
    rows = np.stack([found.first, found.then, found.other_first, found.other_then])
    best = int(np.argmin(run.history.deliveries.time[rows].max(axis=0)))
    chosen: list[int] = rows[:, best].tolist()
    return chosen
