"""Verdicts on two processes that delivered two messages in opposite orders."""

from __future__ import annotations

import numpy as np

from flexgroup.properties.explanations import Letters, at, holds, violated
from flexgroup.properties.indexed_history import IndexedHistory
from flexgroup.properties.kernels.disagreement import Disagreements
from flexgroup.properties.verdict import Step, Verdict


def earliest(run: IndexedHistory, found: Disagreements) -> list[int]:
    """Return the four rows of the disagreement that was complete first."""
    rows = np.stack([found.first, found.then, found.other_first, found.other_then])
    best = int(np.argmin(run.history.deliveries.time[rows].max(axis=0)))
    chosen: list[int] = rows[:, best].tolist()
    return chosen


def evidence(run: IndexedHistory, found: Disagreements) -> tuple[list[Step], list[str]]:
    """Return the earliest disagreement: its events, and the lines that tell it."""
    rows = earliest(run, found)
    letter = Letters(run, [int(run.delivered[row]) for row in rows[:2]])
    a, b, other_a, other_b = (run.delivery(row) for row in rows)
    lines = [
        letter.let(),
        f"process {a.process} delivered a {at(a)} and then b {at(b)}",
        f"process {other_b.process} delivered b {at(other_b)} and then a {at(other_a)}",
    ]
    return [a, b, other_b, other_a], lines


def judge(run: IndexedHistory, name: str, found: Disagreements) -> Verdict:
    """Return the verdict, with a violation for each pair of processes that disagree."""
    if len(found.first) == 0:
        return holds(run, name)
    return violated(name, len(found.first), *evidence(run, found))
