"""Cuts of the network, which heal: at most one side goes on, and then all are together again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from flexgroup import View, connect
from flexgroup.server.settings import Limits

from ..client.loops import on_a_loop
from .agreement import agree, belief_of, members_are, servers_are
from .in_process import servers
from .namespaces import Hosts, needs_namespaces, run
from .servers import ServerProcess
from .test_failures import STACK, close, still_ordered, wait_for_text

pytestmark = needs_namespaces


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with Hosts(3) as made:
        yield made


def start(hosts: Hosts, folder: Path, stack: ExitStack) -> list[ServerProcess]:
    servers: list[ServerProcess] = []
    for host in (1, 2, 3):
        join = ("--join", servers[0].address) if servers else ()
        server = ServerProcess(
            f"s{host}", folder, *join, "--patience", "1",
            listen=f"{hosts.address(host)}:7400", inside=hosts.inside(host),
        )  # fmt: skip
        stack.callback(server.end)
        servers.append(server)
    return servers


def test_a_cut_between_two_servers_excludes_one_of_them_until_it_heals(
    hosts: Hosts, tmp_path: Path
) -> None:
    """s2 and s3 do not hear each other, and s1 hears both."""

    async def play(servers: list[ServerProcess]) -> None:
        links = [await connect(s.address, name=n) for s, n in zip(servers, "abc", strict=True)]
        groups = [await link.join("g", STACK) for link in links]
        await still_ordered(groups)
        hosts.cut(2, 3)
        await agree(servers[:2], servers_are("s1", "s2"), "the younger one is out")
        await still_ordered(groups[:2])
        hosts.heal(2, 3)
        await agree(servers, servers_are("s1", "s2", "s3"), "all are together again")
        again = await connect(servers[2].address, name="c")
        await still_ordered([*groups[:2], await again.join("g")])
        await close([*links, again])

    with ExitStack() as stack:
        asyncio.run(play(start(hosts, tmp_path, stack)))


def test_a_server_that_is_cut_off_stands_still_and_comes_back(hosts: Hosts, tmp_path: Path) -> None:
    """Even if it is the oldest, which leads: the majority goes on without it."""

    async def play(servers: list[ServerProcess]) -> None:
        hosts.cut(1, 2)
        hosts.cut(1, 3)
        await agree(servers[1:], servers_are("s2", "s3"), "the majority goes on")
        assert (await belief_of(servers[0].address))[1] == ("s1", "s2", "s3")
        await asyncio.to_thread(wait_for_text, servers[0].log, "frozen", servers[0])
        links = [await connect(s.address, name=n) for s, n in zip(servers[1:], "bc", strict=True)]
        await still_ordered([await link.join("g", STACK) for link in links])
        hosts.heal(1, 2)
        hosts.heal(1, 3)
        await agree(servers, servers_are("s1", "s2", "s3"), "all are together again")
        await close(links)

    with ExitStack() as stack:
        asyncio.run(play(start(hosts, tmp_path, stack)))


@pytest.mark.parametrize("seconds", [0.9, 3.0])
def test_after_an_outage_of_all_links_all_go_on_with_their_groups(
    seconds: float, hosts: Hosts, tmp_path: Path
) -> None:
    """Their clients notice nothing of it but that messages take long."""

    async def play(servers: list[ServerProcess]) -> None:
        links = [await connect(s.address, name=n) for s, n in zip(servers, "abc", strict=True)]
        groups = [await link.join("g", STACK) for link in links]
        await still_ordered(groups)
        pairs = [(1, 2), (1, 3), (2, 3)]
        for pair in pairs:
            hosts.cut(*pair)
        ordering = asyncio.create_task(still_ordered(groups, 200))
        await asyncio.sleep(seconds)
        assert not ordering.done()
        for pair in pairs:
            hosts.heal(*pair)
        await ordering
        await agree(servers, members_are("g", "a", "b", "c"), "all are members as before")
        assert not any("excluded reason" in server.log.read_text() for server in servers)
        await close(links)

    with ExitStack() as stack:
        asyncio.run(play(start(hosts, tmp_path, stack)))


MEMBER = """
import sys
from flexgroup import blocking
with blocking.connect(sys.argv[1], name="far") as link:
    link.join("g")
    sys.stdin.read()
"""


def test_a_client_whose_machine_falls_silent_leaves_its_groups(hosts: Hosts) -> None:
    """Nothing is sent to it, so only asking tells."""
    here = hosts.address(254)

    @on_a_loop
    async def play() -> None:
        async with (
            servers(1, Limits(gone_seconds=2), host=here) as (server,),
            connect(server.address, name="near") as link,
        ):
            group = await link.join("g", "fifo")
            events = group.events()
            assert isinstance(await anext(events), View)
            far = subprocess.Popen(
                [*hosts.inside(1), sys.executable, "-c", MEMBER, server.address],
                stdin=subprocess.PIPE,
            )
            try:
                joined = await anext(events)
                run(*hosts.inside(1), "ip", "route", "add", "blackhole", here)
                left = await anext(events)
            finally:
                far.kill()
                far.communicate()
            assert isinstance(joined, View)
            assert isinstance(left, View)
            assert (joined.members, left.members) == (("near", "far"), ("near",))

    play()
