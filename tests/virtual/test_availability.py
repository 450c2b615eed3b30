"""How long members wait for messages when a server fails, in virtual time."""

from __future__ import annotations

from itertools import pairwise

import pytest

from flexgroup.virtual.checks import problems
from flexgroup.virtual.execution import Execution
from flexgroup.virtual.schedule import parse_schedule

SENDS = "\n".join(f"{0.1 + at / 100:.3f} send {('ann', 'bob')[at % 2]} A" for at in range(500))
"""One of the two sends every ten milliseconds, for five seconds."""

SCHEDULE = """
seed 1
stack {stack}
servers 3
latency 0.0002 0.001
patience 1.0
client ann 0 A
client bob 1 A
{third}
{sends}
2.000 {fault}
"""

STACKS = ["RELIABLE ATOMIC", "FIFO DCC", "SKEEN", "CAUSAL-RST", "ABCAST", "RELIABLE CAUSAL"]


def longest_gap(stack: str, fault: str, third: str = "") -> float:
    """The longest time in which a member was given nothing."""
    text = SCHEDULE.format(stack=stack, fault=fault, sends=SENDS, third=third)
    execution = Execution(parse_schedule(text))
    execution.run()
    assert problems(execution) == []
    gaps = []
    for name in ("ann", "bob"):
        (membership,) = [m for m in execution.clients[name].lives[0].memberships if m.group == "A"]
        times = [at for at, item in membership.items if isinstance(item, str) and at < 5.0]
        gaps += [later - earlier for earlier, later in pairwise(times)]
    return max(gaps)


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("fault", ["stop 2\n4.0 resume 2", "kill 2"])
def test_a_server_without_members_may_fail_and_nobody_waits(stack: str, fault: str) -> None:
    assert longest_gap(stack, fault) < 0.1


@pytest.mark.parametrize("stack", STACKS)
def test_a_kill_is_noticed_at_once(stack: str) -> None:
    assert longest_gap(stack, "kill 2", "client eve 2 A") < 0.3


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("fault", ["stop 2", "cut 2 0\n2.000 cut 2 1"])
def test_who_is_not_heard_is_waited_for_no_longer_than_patience(stack: str, fault: str) -> None:
    assert longest_gap(stack, fault, "client eve 2 A") < 1.0 + 0.3
