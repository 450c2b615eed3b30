"""Agreement (Hadzilacos & Toueg 1994).

If a correct process delivers a message, every correct destination of it does.

A process is correct in a run if it never crashes in it; one that crashes and recovers is
faulty. Violations are counted in missing deliveries (message, destination). In a run that was
cut short, missing deliveries leave the verdict unknown. A message that was never multicast has
no destinations: integrity is violated then, agreement is not.
"""

from __future__ import annotations

import numpy as np

from flexgroup.properties.indexed_history import NONE, Flags, IndexedHistory
from flexgroup.properties.missing_deliveries import Missing, judge, missing_at_correct
from flexgroup.properties.verdict import Verdict

NAME = "agreement"


def find(run: IndexedHistory) -> Missing:
    correct = ~np.isin(run.history.deliveries.process, run.faulty)
    return missing_after(run, correct)


def check(run: IndexedHistory, total: int | None = None) -> Verdict:
    return judge(run, NAME, find(run), total)


def missing_after(run: IndexedHistory, binding: Flags) -> Missing:
    """Return what is missing of messages with a binding delivery."""
    missing = missing_at_correct(run)
    incomplete = np.zeros(run.message_count, dtype=np.bool_)
    incomplete[run.copies.message[missing]] = True
    rows = np.flatnonzero(binding & incomplete[run.delivered])
    rows = rows[np.argsort(-run.history.deliveries.time[rows], kind="stable")]
    earliest_binding = np.full(run.message_count, NONE, dtype=np.int64)
    earliest_binding[run.delivered[rows]] = rows
    missing &= earliest_binding[run.copies.message] != NONE
    return Missing(np.flatnonzero(missing), earliest_binding)
