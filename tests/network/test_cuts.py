"""Cuts of the network, which heal: at most one side goes on, and then all are together again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from flexgroup import connect

from .agreement import agree, servers_are
from .namespaces import Hosts, needs_namespaces
from .servers import ServerProcess
from .test_failures import STACK, close, still_ordered

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


def test_a_server_that_is_cut_off_stops_and_comes_back(hosts: Hosts, tmp_path: Path) -> None:
    """Even if it is the oldest, which leads: the majority goes on without it."""

    async def play(servers: list[ServerProcess]) -> None:
        hosts.cut(1, 2)
        hosts.cut(1, 3)
        await agree(servers[1:], servers_are("s2", "s3"), "the majority goes on")
        links = [await connect(s.address, name=n) for s, n in zip(servers[1:], "bc", strict=True)]
        await still_ordered([await link.join("g", STACK) for link in links])
        hosts.heal(1, 2)
        hosts.heal(1, 3)
        await agree(servers, servers_are("s1", "s2", "s3"), "all are together again")
        await close(links)

    with ExitStack() as stack:
        asyncio.run(play(start(hosts, tmp_path, stack)))
