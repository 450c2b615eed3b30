"""A stack that flushes at every change of a group, on whole servers: nothing waits for ever."""

from __future__ import annotations

import pytest

from flexgroup.virtual.checks import problems
from flexgroup.virtual.execution import Execution
from flexgroup.virtual.schedule import Load, draw_schedule

STACKS = ["RELIABLE VIRTUAL-SYNCHRONY", "RELIABLE ATOMIC VIRTUAL-SYNCHRONY"]
CHANGES = Load(messages=100, seconds=0.5, changes=12)
FAULTS = Load(messages=60, faults=2)


@pytest.mark.parametrize("load", [CHANGES, FAULTS], ids=["changes", "faults"])
@pytest.mark.parametrize("stack", STACKS)
def test_all_is_delivered_in_order_over_changes_of_groups_and_servers(
    stack: str, load: Load
) -> None:
    for seed in range(4):
        schedule = draw_schedule(seed, stack, load)
        execution = Execution(schedule)
        execution.run()
        found = problems(execution)
        assert not found, "\n".join([*map(str, found[:10]), str(schedule)])
