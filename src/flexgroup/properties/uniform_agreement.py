"""Uniform agreement (Hadzilacos & Toueg 1994).

If any process delivers a message, even one that crashes later, every correct destination does.

Correct processes, the unit of counting and runs that were cut short are as for agreement.
"""

from __future__ import annotations

import numpy as np

from flexgroup.properties.agreement import agreed
from flexgroup.properties.indexed import IndexedHistory
from flexgroup.properties.verdict import Verdict

NAME = "uniform agreement"


def check(run: IndexedHistory) -> Verdict:
    anybody = np.ones(len(run.delivered), dtype=np.bool_)
    return agreed(run, NAME, anybody)
