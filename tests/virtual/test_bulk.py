"""Much to send on links that do not carry much: nobody is taken for dead because of that."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import permutations
from random import Random

import pytest

from flexgroup import connect
from flexgroup.server.server import GroupServer
from flexgroup.server.settings import Settings
from flexgroup.virtual.internet import Internet, Process
from flexgroup.virtual.network import Latency, Network
from flexgroup.virtual.world import World

MACHINES = ("m0", "m1", "m2")
SIZE = 200_000
EACH = 30
"""How many messages each member sends: of so many, links of 2 MB a second have enough for 3 s."""


class NarrowCluster:
    """Three servers, with 2 MB a second between any two, and a member at each that sends."""

    def __init__(self) -> None:
        self.world = World(0)
        self.network = Network(self.world, Latency())
        for one, other in permutations(MACHINES, 2):
            self.network.narrow(one, other, 2_000_000)
        self.processes: list[Process] = []
        self.servers: list[GroupServer] = []
        self.given = dict.fromkeys(MACHINES, 0)
        self.configuration = 0
        """The one in which all are members."""
        self._internet = Internet(self.world, self.network)

    def begin(self, stack: str) -> None:
        for machine in MACHINES:
            self.process(machine).create_task(self._serve(machine))
            self.world.run(self.world.now + 0.5)
        for machine in MACHINES:
            self.process(machine).create_task(self._take_part(machine, stack))

    def process(self, machine: str) -> Process:
        self.processes.append(Process(self.world, self._internet, machine))
        return self.processes[-1]

    async def _serve(self, machine: str) -> None:
        join = ("m0:7400",) if self.servers else ()
        random = Random(machine)
        settings = Settings(machine, machine, 7400, join=join, random=random, clock=lambda: 0)
        self.servers.append(GroupServer(settings))
        await self.servers[-1].run()

    async def _take_part(self, machine: str, stack: str) -> None:
        link = await connect(f"{machine}:7400", name=machine)
        group = await link.join("G", stack=stack)
        while len((await group.info()).members) < len(MACHINES):
            await asyncio.sleep(0.05)
        self.configuration = self.servers[0].deployment.number
        await group.send_all([bytes(SIZE)] * EACH)
        async for _ in group:
            self.given[machine] += 1


@pytest.fixture
def cluster() -> Iterator[NarrowCluster]:
    cluster = NarrowCluster()
    yield cluster
    for process in cluster.processes:
        process.end()
        assert process.errors == []


@pytest.mark.parametrize("stack", ["ATOMIC", "ABCAST", "RELIABLE ATOMIC"])
def test_what_takes_long_to_send_is_no_silence(cluster: NarrowCluster, stack: str) -> None:
    cluster.begin(stack)
    cluster.world.run(30.0)
    assert cluster.given == dict.fromkeys(MACHINES, 3 * EACH)
    numbers = {server.deployment.number for server in cluster.servers}
    assert numbers == {cluster.configuration}


def test_a_process_joins_while_links_are_busy(cluster: NarrowCluster) -> None:
    """What is under way is little enough to be delivered, or exchanged, before that."""
    joined: list[float] = []

    async def join() -> None:
        link = await connect("m1:7400", name="late")
        await link.join("G")
        joined.append(cluster.world.now)

    cluster.begin("ATOMIC")
    cluster.world.run(3.5)
    cluster.process("m1").create_task(join())
    cluster.world.run(30.0)
    assert joined[0] - 3.5 < 1.0
    assert cluster.given == dict.fromkeys(MACHINES, 3 * EACH)
    assert {len(server.deployment.configuration.servers) for server in cluster.servers} == {3}
