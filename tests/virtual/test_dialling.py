"""Which servers are dialled, where numbers change hands while the network lets nothing through."""

from __future__ import annotations

import asyncio

from flexgroup.core.errors import UsageError
from flexgroup.membership.configuration import Server
from flexgroup.server.peers.links import PeerLinks
from flexgroup.server.server import GroupServer
from flexgroup.server.settings import Settings
from flexgroup.virtual.internet import Internet, Process
from flexgroup.virtual.network import Latency, Network
from flexgroup.virtual.world import World


def test_a_server_that_gets_the_number_of_another_is_dialled_although_that_dial_hangs() -> None:
    world = World(0)
    network = Network(world, Latency())
    internet = Internet(world, network)
    here = Process(world, internet, "here")
    there = Process(world, internet, "there")
    dialled: list[float] = []

    class Listening(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            dialled.append(world.now)

    async def one_number_for_two() -> None:
        links = GroupServer(Settings("here")).links
        links.connect(Server(5, "lost", "nowhere:7400"))
        await asyncio.sleep(0.1)
        links.forget(5)
        links.connect(Server(5, "there", "there:7400"))

    network.cut("here", "nowhere")
    there.create_task(there.create_server(Listening, "there", 7400))
    world.run(0.1)
    here.create_task(one_number_for_two())
    world.run(3.0)
    assert dialled
    here.end()
    there.end()


def test_a_newcomer_that_is_never_reached_is_dialled_until_it_becomes_a_member() -> None:
    """Nobody tells that the leader has given it up."""
    world = World(0)
    internet = Internet(world, Network(world, Latency()))
    here = Process(world, internet, "here")
    made: list[PeerLinks] = []

    async def dial() -> None:
        links = GroupServer(Settings("here")).links
        made.append(links)
        links.connect(Server(5, "nobody", "nowhere:7400"))
        await asyncio.sleep(60.0)
        links.keep_only({5}, 6)

    here.create_task(dial())
    dialled: dict[float, bool] = {}
    for until in (1.0, 59.0, 61.0, 300.0):
        world.run(until)
        dialled[until] = bool(made[0]._dialing)
    assert dialled == {1.0: True, 59.0: False, 61.0: True, 300.0: True}
    here.end()


def test_servers_that_join_each_other_are_told_to_begin_with_one_that_joins_nobody() -> None:
    world = World(0)
    internet = Internet(world, Network(world, Latency()))
    processes = [Process(world, internet, machine) for machine in ("here", "there")]
    told: list[str] = []

    async def join(machine: str, other: str) -> None:
        server = GroupServer(Settings(machine, host=machine, port=7400, join=(f"{other}:7400",)))
        try:
            await server.run()
        except UsageError as error:
            told.append(str(error))

    processes[0].create_task(join("here", "there"))
    processes[1].create_task(join("there", "here"))
    world.run(60.0)
    assert len(told) == 2
    assert any("the first server is started without --join" in error for error in told), told
    for process in processes:
        process.end()
