"""The leader fails in the middle of an admission: those who are left go on, all the same."""

from __future__ import annotations

import pytest

from flexgroup.virtual.checks import problems
from flexgroup.virtual.execution import Execution
from flexgroup.virtual.schedule import parse_schedule

BEGINNING = """
seed {seed}
stack ABCAST
servers 4
latency 0.0002 0.001 0.02
patience 0.5
client c0 0 A
client c1 1 A
client c2 2 A
client c3 3 A
0.010000 kill 1
2.000000 restart 1
2.160000 send c0 A
"""

CUT_OFF = """
2.170000 cut 3 0
2.200000 kill 0
4.170000 heal
"""
"""The newcomer waits for its contact, which is dead: the others have its configuration for it."""

OUTAGE = (
    "".join(f"\n2.170000 cut {a} {b}" for a in range(4) for b in range(4) if a != b)
    + """
2.200000 kill 0
2.500000 heal
"""
)
"""The newcomer has given up when the others come to the configuration with it: it does not count
for them."""


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("failure", [CUT_OFF, OUTAGE], ids=["cut off", "outage"])
def test_no_cluster_is_lost(failure: str, seed: int) -> None:
    execution = Execution(parse_schedule(BEGINNING.format(seed=seed) + failure))
    execution.run()
    assert problems(execution) == []
