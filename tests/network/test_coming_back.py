"""Real servers that were killed, all at once, are the same cluster again when they are started."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from flexgroup import connect
from flexgroup.client.group import Link
from flexgroup.core.errors import FlexGroupError

from .agreement import agree
from .servers import LAST_RESORT, ServerProcess

STACK = "RELIABLE ATOMIC"
NAMES = ("s1", "s2", "s3")


class KeptCluster:
    """Three servers that keep data, each in a folder of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self._options = options
        """What all servers are started with, every time."""
        self.servers: dict[str, ServerProcess] = {}
        self.start("s1")
        self.start("s2", "--join", self.servers["s1"].address)
        self.start("s3", "--join", self.servers["s1"].address)

    def data(self, name: str) -> str:
        return str(self.folder / f"data-{name}")

    def start(self, name: str, *options: str) -> None:
        before = self.servers.get(name)
        self.servers[name] = ServerProcess(
            name, self.folder, "--patience", "1", "--data", self.data(name),
            *self._options, *options,
            listen=before.address if before is not None else "127.0.0.1:0",
        )  # fmt: skip

    def kill_all(self) -> None:
        for server in self.servers.values():
            server.kill()
            server.end()

    def end(self) -> None:
        for server in self.servers.values():
            server.end()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KeptCluster]:
    made = KeptCluster(tmp_path)
    yield made
    made.end()


async def links_to(cluster: KeptCluster) -> list[Link]:
    return [await connect(cluster.servers[name].address, name=f"at {name}") for name in NAMES]


async def close(links: list[Link]) -> None:
    for link in links:
        with suppress(FlexGroupError):
            await link.close()


async def exchange(links: list[Link], group: str) -> None:
    """A member at each server sends, and all receive the same in the same order."""
    groups = [await link.join(group, STACK) for link in links]
    for number, member in enumerate(groups):
        await member.send(b"%d" % number)
    orders = [[(await member.receive(LAST_RESORT)).body for _ in groups] for member in groups]
    assert sorted(orders[0]) == [b"0", b"1", b"2"]
    assert orders == [orders[0]] * 3


def test_all_are_killed_and_started_in_reverse_order(cluster: KeptCluster) -> None:
    async def play() -> None:
        links = await links_to(cluster)
        await exchange(links, "g")
        await (await links[0].join("empty", STACK)).leave()
        cluster.kill_all()
        await close(links)
        for name in reversed(NAMES):
            cluster.start(name)
        groups = (("g", ()), ("empty", ()))
        await agree(
            list(cluster.servers.values()),
            lambda belief: set(belief[1]) == set(NAMES) and belief[2] == groups,
            "all three are back with both groups, which have no members",
        )
        links = await links_to(cluster)
        await exchange(links, "g")
        await exchange(links, "empty")
        await close(links)

    asyncio.run(play())


def test_messages_that_were_confirmed_are_kept_when_all_are_killed(cluster: KeptCluster) -> None:
    async def play() -> None:
        bodies = [b"%d" % number for number in range(1, 201)]
        async with connect(cluster.servers["s1"].address, name="sender") as link:
            orders = await link.join("orders", "ABCAST SAFE", keep=1000)
            for body in bodies:
                await orders.send(body)
                await orders.confirm()
            cluster.kill_all()
        for name in ("s3", "s2"):
            cluster.start(name)
        for name in ("s2", "s3"):
            async with connect(cluster.servers[name].address, name=name, timeout=None) as link:
                orders = await link.join("orders", since=0)
                messages = [await orders.receive(LAST_RESORT) for _ in bodies]
            kept = [(message.number, message.body) for message in messages]
            assert kept == list(enumerate(bodies, 1))

    asyncio.run(play())


def test_data_of_one_server_are_not_for_another(cluster: KeptCluster) -> None:
    cluster.kill_all()
    refused = {
        ("--name", "other"): "are of the server 's1', not of 'other'",
        ("--listen", "127.0.0.1:1"): "is known to the others at",
    }
    for options, text in refused.items():
        where = () if "--listen" in options else ("--listen", cluster.servers["s1"].address)
        command = ("-m", "flexgroup.cli.main", "server", "--data", cluster.data("s1"))
        ended = subprocess.run(
            [sys.executable, *command, *options, *where],
            capture_output=True, text=True, timeout=LAST_RESORT, check=False,
        )  # fmt: skip
        assert ended.returncode != 0
        assert text in ended.stderr


def test_a_server_with_data_founds_no_second_cluster(cluster: KeptCluster) -> None:
    """Neither without the others, nor where another cluster is named to it."""

    async def play() -> None:
        cluster.kill_all()
        cluster.start("s3", "--join", "127.0.0.1:1")
        async with connect(cluster.servers["s3"].address, name="observer") as link:
            seen = await link.inspect()
        assert len(seen["servers"]) == 3, json.dumps(seen)

    asyncio.run(play())
