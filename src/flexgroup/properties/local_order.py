"""Local total order (Hadzilacos & Toueg 1994), for any process, correct or not.

If two processes both deliver two messages that have the same destinations, they deliver them in
the same order.

Violations are counted in pairs of processes that disagree. As for pairwise order, nothing
outside the cyclic components of the head merge is looked at.
"""

from __future__ import annotations

import numpy as np

from flexgroup.properties.indexed_history import NONE, IndexedHistory
from flexgroup.properties.kernels.disagreement import Disagreements
from flexgroup.properties.kernels.grouping import distinct
from flexgroup.properties.opposite_orders import judge
from flexgroup.properties.verdict import Verdict
from flexgroup.trace.history import Ints

NAME = "local order"


def check(run: IndexedHistory) -> Verdict:
    return judge(run, NAME, find(run))


def find(run: IndexedHistory) -> Disagreements:
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
