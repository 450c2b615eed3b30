"""Agreement (Hadzilacos & Toueg 1994).

If a correct process delivers a message, every correct destination of it does.

A process is correct in a run if it never crashes in it; one that crashes and recovers is
faulty. Violations are counted in missing deliveries (message, destination). In a run that was
cut short, missing deliveries leave the verdict unknown. A message that was never multicast has
no destinations: integrity is violated then, agreement is not.
"""

from __future__ import annotations

import numpy as np

from flexgroup.properties.indexed import NONE, Flags, IndexedHistory
from flexgroup.properties.missing import judge, missing_at_correct
from flexgroup.properties.verdict import Verdict

NAME = "agreement"


def check(run: IndexedHistory) -> Verdict:
    correct = ~np.isin(run.history.deliveries.process, run.faulty)
    return agreed(run, NAME, correct)


def agreed(run: IndexedHistory, name: str, binding: Flags) -> Verdict:
    """Whether each message with a binding delivery reached all correct destinations."""
    rows = np.flatnonzero(binding)
    rows = rows[np.argsort(-run.history.deliveries.time[rows], kind="stable")]
    earliest_binding = np.full(run.message_count, NONE, dtype=np.int64)
    earliest_binding[run.delivered[rows]] = rows
    missing = missing_at_correct(run) & (earliest_binding[run.copies.message] != NONE)
    return judge(run, name, np.flatnonzero(missing), earliest_binding)
