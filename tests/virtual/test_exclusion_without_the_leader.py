"""The leader is lost when all have accepted that another server, which stands still, is excluded.

That one is the oldest when it goes on, so it leads, and has to complete what excludes itself. Those
who go on without it are too few to find out by themselves: they have to hear it from this server.
"""

from __future__ import annotations

import pytest

from flexgroup.virtual.checks import problems
from flexgroup.virtual.execution import Execution
from flexgroup.virtual.schedule import parse_schedule

BEGINNING = """
seed {seed}
stack RELIABLE ATOMIC
servers 4
latency 0.0002 0.002
patience 1.0
client ann 1 A
"""
CUT_OFF = "".join(f"{{at}} cut {a} {b}\n" for b in (1, 2, 3) for a, b in ((0, b), (b, 0)))

KILLED = (
    CUT_OFF
    + """
{at} kill 0
2.066469 resume {stopped}
2.266469 heal
2.566469 restart 0
"""
)
ALIVE = (
    CUT_OFF
    + """
2.066469 resume {stopped}
20.000000 send ann A
"""
)


@pytest.mark.parametrize("at", [1.0634, 1.0649, 1.066469])
@pytest.mark.parametrize("stopped", [1, 2, 3])
@pytest.mark.parametrize("then", [KILLED, ALIVE], ids=["killed", "cut off"])
def test_the_others_go_on(then: str, stopped: int, at: float) -> None:
    told = f"{BEGINNING}0.1 stop {stopped}\n{then}"
    execution = Execution(parse_schedule(told.format(seed=0, at=at, stopped=stopped)))
    execution.run()
    assert problems(execution) == []
