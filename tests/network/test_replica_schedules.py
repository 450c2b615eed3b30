"""Groups of replicas on real servers under schedules of faults: nothing that anybody delivered is
lost, and what servers recorded keeps what the stacks promise.

Five short schedules with four stacks each, which makes twenty; `tests/network/replica_trial.py`
executes as many as one likes.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from flexgroup.trace.validate.report import validate
from flexgroup.virtual.clients import Problem
from flexgroup.virtual.schedule import Schedule

from .namespaces import needs_namespaces
from .replica_trial import LOAD, STACKS, drawn, execute_all, report

pytestmark = [needs_namespaces, pytest.mark.slow]

SHORT = replace(LOAD, faults=3, longest=1.5, longest_stop=1.5)


def test_short_schedules_are_good_on_real_servers(tmp_path: Path) -> None:
    bad: list[str] = []
    folders: set[Path] = set()

    def when_done(schedule: Schedule, found: list[Problem], folder: Path) -> None:
        folders.add(folder)
        if told := report(schedule, found, folder):
            bad.append(told)

    schedules = list(islice(drawn(0, SHORT), 5))
    kinds = {action.what for schedule in schedules for action in schedule.actions}
    assert {"kill", "restart", "stop", "resume", "cut", "heal"} <= kinds
    assert any(len([a for a in s.actions if a.what == "kill"]) >= 9 for s in schedules)
    asyncio.run(execute_all(schedules, STACKS, tmp_path, 1, when_done))
    assert not bad, "\n\n".join(bad)[:20_000]
    (folder,) = folders
    findings = validate(folder / "traces")
    assert (findings.errors, findings.warnings) == (0, 0), list(map(str, findings.problems))
