"""Validity (Hadzilacos & Toueg 1994, in the form of Schiper & Pedone 2008).

If a correct process multicasts a message, every correct destination delivers it.

A process is correct in a run if it never crashes in it; one that crashes and recovers is
faulty. Clients, which are processes that only multicast, are correct unless they crash.
Violations are counted in missing deliveries (message, destination). In a run that was cut short,
missing deliveries leave the verdict unknown.
"""

from __future__ import annotations

import numpy as np

from flexgroup.properties.indexed_history import NONE, IndexedHistory
from flexgroup.properties.missing_deliveries import Missing, judge, missing_at_correct
from flexgroup.properties.verdict import Verdict

NAME = "validity"


def find(run: IndexedHistory) -> Missing:
    senders = run.history.multicasts.process[run.multicast_row[run.copies.message]]
    missing = missing_at_correct(run) & ~np.isin(senders, run.faulty)
    multicast_is_the_cause = np.full(run.message_count, NONE, dtype=np.int64)
    return Missing(np.flatnonzero(missing), multicast_is_the_cause)


def check(run: IndexedHistory, total: int | None = None) -> Verdict:
    return judge(run, NAME, find(run), total)
