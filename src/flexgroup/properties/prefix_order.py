"""Uniform prefix order (Schiper & Pedone 2008).

For any two messages and any two processes that are destinations of both: if one process
delivers m and the other delivers m', then the one delivers m' before m or the other delivers m
before m'.

In other words: of the messages addressed to both processes, what one delivered is a prefix of
what the other delivered. That also binds processes that crash, and runs that were cut short.
Violations are counted in pairs of processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flexgroup.properties.explanations import Letters, at, holds, violated
from flexgroup.properties.indexed_history import NONE, IndexedHistory
from flexgroup.properties.kernels.disagreement import Disagreements
from flexgroup.properties.kernels.grouping import distinct
from flexgroup.properties.kernels.skipped_messages import Skips, skips
from flexgroup.properties.opposite_orders import evidence
from flexgroup.properties.verdict import Step, Verdict
from flexgroup.trace.history import Ints

NAME = "prefix order"


@dataclass(frozen=True)
class SkippedFirst:
    """The pairs of processes of which one skipped a message; and the violation that was complete
    first: `process` delivered `skipped`, which `other` missed, and `other` delivered `overtaking`,
    which `process` missed or delivered only then."""

    pairs: Sequence[tuple[int, int]]
    process: int = NONE
    other: int = NONE
    skipped: int = NONE
    overtaking: int = NONE


def check(run: IndexedHistory) -> Verdict:
    return _verdict(run, *_find(run))


def check_part(run: IndexedHistory, skipped: SkippedFirst) -> Verdict:
    """Check a run of which only the messages in cyclic components are given, and those that tell
    what was skipped in the whole run."""
    opposed = _opposed(run)
    pairs = np.array(skipped.pairs, dtype=np.int64).reshape(-1, 2)
    named = np.array([[skipped.process, skipped.other]], dtype=np.int64)
    messages = np.searchsorted(run.identities, [[skipped.skipped, skipped.overtaking]])
    first = Skips(*np.concatenate([named, messages], axis=1).T)
    return _verdict(run, opposed, first, pairs)


def _verdict(
    run: IndexedHistory, opposed: Disagreements, skipped: Skips, pairs: Ints | None = None
) -> Verdict:
    """Return the verdict, given the pairs in which one skipped a message if `skipped` has not
    all."""
    one, other = _processes(run, opposed, skipped)
    if pairs is not None:
        one, other = (
            np.concatenate([ends[: len(opposed.first)], more])
            for ends, more in zip((one, other), pairs.T, strict=True)
        )
    if len(one) == 0:
        return holds(run, NAME)
    width = 1 + max(int(one.max()), int(other.max()))
    count = len(distinct(np.minimum(one, other) * width + np.maximum(one, other)))
    found = evidence(run, opposed) if len(opposed.first) else _evidence(run, skipped)
    return violated(run, NAME, count, *found)


def disagreeing(run: IndexedHistory) -> tuple[Ints, Ints]:
    """Return the pairs of processes that disagree, some of them more than once."""
    return _processes(run, *_find(run))


def _find(run: IndexedHistory) -> tuple[Disagreements, Skips]:
    copies = run.copies
    skipped = skips(copies.message, copies.process, copies.row, run.message_count)
    return _opposed(run), skipped


def _opposed(run: IndexedHistory) -> Disagreements:
    at_destinations = run.cyclic.chosen(run.expected[run.cyclic.row])
    alike = np.zeros(run.message_count, dtype=np.int64)
    return run.opposed_among(at_destinations, alike)


def _processes(run: IndexedHistory, opposed: Disagreements, skipped: Skips) -> tuple[Ints, Ints]:
    process = run.history.deliveries.process
    one = np.concatenate([process[opposed.first], skipped.process])
    other = np.concatenate([process[opposed.other_first], skipped.other])
    return one, other


def _evidence(run: IndexedHistory, skipped: Skips) -> tuple[list[Step], list[str]]:
    row_of_a = run.row_at(skipped.skipped, skipped.process)
    row_of_other_b = run.row_at(skipped.overtaking, skipped.other)
    time = run.history.deliveries.time
    best = int(np.argmin(np.maximum(time[row_of_a], time[row_of_other_b])))
    letter = Letters(run, [int(skipped.skipped[best]), int(skipped.overtaking[best])])
    a, other_b = run.delivery(int(row_of_a[best])), run.delivery(int(row_of_other_b[best]))
    row_of_b = int(run.row_at(skipped.overtaking, skipped.process)[best])
    witness = [a, other_b]
    told = ", but not b"
    if row_of_b != NONE:
        b = run.delivery(row_of_b)
        witness = [a, b, other_b]
        told = f" and then b {at(b)}"
    lines = [
        letter.let(),
        f"{run.node(a.process)} delivered a {at(a)}{told}",
        f"{run.node(other_b.process)} delivered b {at(other_b)}, but not a",
    ]
    return witness, lines
