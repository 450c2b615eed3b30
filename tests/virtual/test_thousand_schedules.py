"""A thousand schedules over all stacks, none of them bad; a tenth of them in the pure form.

What the load contains: two to four servers, six clients in groups that overlap, links of up to
20 ms and more, and joins and leaves. What goes wrong: fewer than half of the servers are killed at
a time, servers stand still for up to one and a half times `patience`, ways are cut, slow and uneven
for up to three times `patience`, all of them at once as well, and disks are stuck or fail.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from flexgroup._pure import compiled
from flexgroup.virtual.campaign import LOADS, STACKS, execute
from flexgroup.virtual.checks import problems
from flexgroup.virtual.schedule import Load, draw_schedule

SCHEDULES = 1000 if compiled() else 100
SEEDS = range(-(-SCHEDULES // (2 * len(STACKS))))

DENSE = replace(LOADS["dense"], servers=range(2, 5))
FAULTS = replace(LOADS["faults"], servers=range(2, 5))


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("load", [DENSE, FAULTS], ids=["dense", "faults"])
def test_no_schedule_is_bad(stack: str, load: Load) -> None:
    for seed in SEEDS:
        schedule = draw_schedule(seed, stack, load)
        found = problems(execute(schedule))
        assert not found, "\n".join([*map(str, found[:5]), str(schedule)])
