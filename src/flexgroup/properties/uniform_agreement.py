"""Uniform agreement (Hadzilacos & Toueg 1994).

If any process delivers a message, even one that crashes later, every correct destination does.

Correct processes, the unit of counting and runs that were cut short are as for agreement.
"""

from __future__ import annotations

import numpy as np

from flexgroup.properties.agreement import missing_after
from flexgroup.properties.indexed_history import IndexedHistory
from flexgroup.properties.missing_deliveries import Missing, judge
from flexgroup.properties.verdict import Verdict

NAME = "uniform agreement"


def find(run: IndexedHistory) -> Missing:
    anybody = np.ones(len(run.delivered), dtype=np.bool_)
    return missing_after(run, anybody)


def check(run: IndexedHistory, total: int | None = None) -> Verdict:
    return judge(run, NAME, find(run), total)
