"""Pairwise total order (Hadzilacos & Toueg 1994), for any process, correct or not.

If two processes both deliver two messages, they deliver them in the same order.

Violations are counted in pairs of processes that disagree. Two messages in opposite orders are
a cycle of length two, so nothing outside the cyclic components of the head merge is looked at,
and nothing at all if there is none.
"""

from __future__ import annotations

from flexgroup.properties.indexed_history import IndexedHistory
from flexgroup.properties.opposite_orders import judge
from flexgroup.properties.verdict import Verdict

NAME = "pairwise order"


def check(run: IndexedHistory) -> Verdict:
    return judge(run, NAME, run.opposed)
