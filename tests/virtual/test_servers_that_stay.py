"""Servers to which nothing happens stay in their configuration, and a change is followed by another
one only if somebody asks for that: nobody stands still because leases end too early."""

from __future__ import annotations

import pytest

from flexgroup.client.connecting import connect
from flexgroup.client.group import Group
from flexgroup.membership.timings import SHORTEST_PATIENCE
from flexgroup.virtual.execution import Execution
from flexgroup.virtual.schedule import parse_schedule

SCHEDULE = """
seed 1
stack ABCAST
servers {servers}
patience {patience}
"""


def running(servers: int, patience: float) -> Execution:
    execution = Execution(parse_schedule(SCHEDULE.format(servers=servers, patience=patience)))
    execution._begin()
    assert execution.problems == []
    execution.world.run(execution.now() + 3)
    return execution


def changes(execution: Execution, seconds: float) -> int:
    """How many configurations the first server installs in this time."""
    server = execution.servers[0].server
    assert server is not None
    before = server.deployment.number
    execution.world.run(execution.now() + seconds)
    return server.deployment.number - before


@pytest.mark.parametrize("patience", [SHORTEST_PATIENCE, 2.0])
def test_nothing_changes_where_nothing_happens(patience: float) -> None:
    assert changes(running(9, patience), 5) == 0


def test_one_request_leads_to_one_change_where_beats_take_long() -> None:
    """A beat and its answer take 160 ms of the 375 ms that leases last, and a change half a second:
    if beats counted only where both servers have installed the same configuration, leases would
    end in every change, and each would be followed by another one, without end."""
    execution = running(5, 0.5)
    machines = [server.machine for server in execution.servers]
    for one in machines:
        for other in machines:
            execution.network.slow(one, other, 0.08 if one != other else 0.0)
    assert changes(execution, 5) == 0

    async def create() -> None:
        link = await connect(execution.servers[0].address, name="ann")
        await Group(link, "a").create("ABCAST")

    execution.process(machines[0], "ann").create_task(create())
    assert changes(execution, 10) == 1
