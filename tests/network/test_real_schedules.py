"""Schedules of load and faults on real servers: none is bad, and every cluster comes back.

Thirty short ones; `tests/network/real_trial.py` executes as many as one likes.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from flexgroup.virtual.schedule import PATIENCES, Schedule

from .namespaces import needs_namespaces
from .real_execution import RealExecution, execute_all
from .real_trial import LOAD, drawn, report

pytestmark = [needs_namespaces, pytest.mark.slow]

SHORT = replace(LOAD, servers=(3,), messages=60, changes=6, faults=2, longest=2.0)


def test_thirty_schedules_are_good_on_real_servers(tmp_path: Path) -> None:
    """Those with the least patience take the least time."""
    shortest = (s for s in drawn(0, SHORT) if s.patience == min(PATIENCES))
    bad: list[str] = []

    def when_done(schedule: Schedule, execution: RealExecution) -> None:
        if told := report(schedule, execution):
            bad.append(told)

    asyncio.run(execute_all(list(islice(shortest, 30)), tmp_path, 6, when_done))
    assert not bad, "\n\n".join(bad)[:20_000]
