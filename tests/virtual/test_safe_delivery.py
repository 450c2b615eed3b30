"""What was acknowledged is not lost: safe delivery among whole servers that fail."""

from __future__ import annotations

import pytest

from flexgroup.virtual.checks import problems
from flexgroup.virtual.execution import Execution
from flexgroup.virtual.schedule import parse_schedule

CUT_OFF_AND_KILLED = """
seed 1
stack {stack}
servers 3
latency 0.0002 0.001
patience 1.0
client ann 0 A
client bob 1 A
client eve 2 A
0.010000 send eve A
0.100000 cut 0 2
0.100000 cut 2 0
0.100000 cut 1 2
0.100000 cut 2 1
0.110000 send eve A
0.500000 kill 2
3.000000 send ann A
"""
"""Server 2 is off the network when its client sends for the second time, and is then killed. When
the network heals at last, the others have gone on without it."""

STACKS = ["RELIABLE SAFE", "RELIABLE CAUSAL SAFE", "RELIABLE ATOMIC SAFE", "FIFO DCC SAFE"]


def executed(stack: str) -> Execution:
    execution = Execution(parse_schedule(CUT_OFF_AND_KILLED.format(stack=stack)))
    execution.run()
    assert problems(execution) == []
    return execution


def given(execution: Execution, client: str) -> set[str]:
    """What a client was given before it had to connect again."""
    return execution.clients[client].lives[0].given()


def test_a_server_off_the_network_acknowledges_what_is_then_lost() -> None:
    """To come back to its sender is no more than to be at its server."""
    execution = executed("RELIABLE")
    assert "eve.0:1" in given(execution, "eve")
    assert "eve.0:1" not in given(execution, "ann") | given(execution, "bob")


@pytest.mark.parametrize("stack", STACKS)
def test_with_safe_delivery_it_acknowledges_nothing(stack: str) -> None:
    execution = executed(stack)
    assert "eve.0:0" in given(execution, "eve") & given(execution, "ann") & given(execution, "bob")
    assert "eve.0:1" not in given(execution, "eve")
