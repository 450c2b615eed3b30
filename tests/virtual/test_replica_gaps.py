"""How long members of a group of replicas are given nothing when servers are killed, in virtual
time: what links and the stack take, without what a machine takes to compute."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from flexgroup.client.group import Link

from .replicated_cluster import ReplicatedCluster, replicated

NAMES = ("s0", "s1", "s2", "s3", "s4")
ROUND_TRIP = 0.002
"""The longest there is in these clusters, in seconds."""
BEAT = 0.1
STACKS = ["LEADER PAXOS", "LEADER PAXOS FT-ABCAST", "LEADER PAXOS DCC-CFT", "LEADER WHITE-BOX"]


def sends_all_the_time(
    cluster: ReplicatedCluster, given: list[float]
) -> Callable[[Link], Coroutine[Any, Any, None]]:
    async def work(link: Link) -> None:
        group = await link.join("g")

        async def send() -> None:
            while True:
                await group.send(b"x")
                await asyncio.sleep(0.005)

        sending = asyncio.create_task(send())
        while not sending.done():
            await group.receive()
            given.append(cluster.execution.now())

    return work


@pytest.mark.parametrize("stack", STACKS)
def test_ten_round_trips_after_the_suspicion(stack: str) -> None:
    """Of as many as may fail, the leader among them."""
    with replicated(5, without_data=tuple(range(5))) as cluster:
        cluster.create(stack, {"g": NAMES})
        given: dict[int, list[float]] = {server: [] for server in range(5)}
        for server in range(5):
            cluster.begin(server, sends_all_the_time(cluster, given[server]))
        cluster.pass_time(0.1)
        next_leader = cluster.replica(1)
        at = cluster.execution.now()
        cluster.kill(0, 4)
        while next_leader.suspected != {0, 4}:
            cluster.pass_time(0.0005)
        suspected = cluster.execution.now()
        cluster.pass_time(0.05)
        assert suspected - at < 5 * ROUND_TRIP < BEAT
        for server in (1, 2, 3):
            first = next(time for time in given[server] if time > suspected)
            assert first - suspected < 10 * ROUND_TRIP
