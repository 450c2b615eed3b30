"""Groups of replicas on real servers that are killed with `kill -9` and started again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from flexgroup import connect
from flexgroup.core.errors import FlexGroupError

from .servers import LAST_RESORT
from .test_coming_back import NAMES, KeptCluster

STACK = "LEADER PAXOS"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KeptCluster]:
    made = KeptCluster(tmp_path)
    yield made
    made.end()


class Member:
    """A member over one server, with all that it is given there."""

    def __init__(self, cluster: KeptCluster, server: str) -> None:
        self.seen: list[tuple[int, bytes]] = []
        self._cluster = cluster
        self._server = server

    async def join(self) -> None:
        self.link = await connect(self._cluster.servers[self._server].address, name=self._server)
        self.group = await self.link.join("a")
        self._task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        with suppress(FlexGroupError):
            async for message in self.group:
                self.seen.append((message.number, message.body))

    async def send(self, *bodies: bytes) -> None:
        await self.group.send_all(bodies)
        await self.group.confirm()

    async def has_seen(self, count: int) -> list[tuple[int, bytes]]:
        async with asyncio.timeout(LAST_RESORT):
            while len(self.seen) < count:
                await asyncio.sleep(0.01)
        return self.seen


def numbered(first: int, *bodies: bytes) -> list[tuple[int, bytes]]:
    return list(enumerate(bodies, first))


async def came_back(cluster: KeptCluster, server: str, delivered: int) -> None:
    """Wait until the replica at a server has been given so many messages."""
    async with asyncio.timeout(LAST_RESORT):
        while True:
            with suppress(FlexGroupError):
                async with await connect(cluster.servers[server].address) as link:
                    for domain in (await link.inspect())["replicas"]:
                        if domain["here"] and domain["here"]["delivered"] == delivered:
                            return
            await asyncio.sleep(0.05)


def test_the_leader_is_killed_and_comes_back(cluster: KeptCluster) -> None:
    async def run() -> None:
        first, second, third = members = [Member(cluster, name) for name in NAMES]
        async with await connect(cluster.servers["s1"].address) as link:
            await link.create_replicated(STACK, {"a": NAMES})
        for member in members:
            await member.join()
        await first.send(b"1", b"2")
        await third.send(b"3")
        before = numbered(1, b"1", b"2", b"3")
        for member in members:
            assert await member.has_seen(3) == before
        cluster.servers["s1"].kill()
        await second.send(b"4")
        await third.send(b"5", b"6")
        for member in (second, third):
            assert await member.has_seen(6) == before + numbered(4, b"4", b"5", b"6")
        assert first.seen == before
        cluster.servers["s1"].end()
        cluster.start("s1")
        await came_back(cluster, "s1", 6)
        again = Member(cluster, "s1")
        await again.join()
        cluster.servers["s2"].kill()
        await again.send(b"7")
        assert await again.has_seen(1) == numbered(7, b"7")
        assert (await third.has_seen(7))[-1] == (7, b"7")
        for member in (again, third):
            await member.link.close()

    asyncio.run(run())


def test_all_are_killed_and_go_on_with_what_was_confirmed(cluster: KeptCluster) -> None:
    async def send_first() -> None:
        async with await connect(cluster.servers["s2"].address) as link:
            await link.create_replicated(STACK, {"a": NAMES})
        member = Member(cluster, "s2")
        await member.join()
        await member.send(*[b"%d" % number for number in range(1, 101)])
        await member.link.close()

    async def send_more() -> None:
        for name in NAMES:
            await came_back(cluster, name, 100)
        member = Member(cluster, "s3")
        await member.join()
        await member.send(b"101")
        assert await member.has_seen(1) == [(101, b"101")]
        await member.link.close()

    asyncio.run(send_first())
    cluster.kill_all()
    for name in reversed(NAMES):
        cluster.start(name)
    asyncio.run(send_more())


def test_a_server_whose_log_is_damaged_says_so_and_the_others_go_on(cluster: KeptCluster) -> None:
    async def send(server: str, *bodies: bytes) -> None:
        member = Member(cluster, server)
        await member.join()
        await member.send(*bodies)
        await member.link.close()

    async def begin() -> None:
        async with await connect(cluster.servers["s2"].address) as link:
            await link.create_replicated(STACK, {"a": NAMES})
        for number in range(20):
            await send("s2", b"%d" % number)

    asyncio.run(begin())
    address = cluster.servers["s1"].address
    cluster.servers["s1"].kill()
    (log,) = [path for path in Path(cluster.data("s1")).glob("replicas/*/*/*") if path.is_file()]
    damaged = bytearray(log.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    log.write_bytes(damaged)
    ended = subprocess.run(
        [
            sys.executable, "-m", "flexgroup.cli.main", "server", "--name", "s1",
            "--listen", address, "--data", cluster.data("s1"),
        ],
        capture_output=True, text=True, timeout=LAST_RESORT, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert f"{log} is damaged at byte" in ended.stderr
    assert "bring back a copy of the file" in ended.stderr
    assert log.read_bytes() == damaged
    asyncio.run(send("s3", b"20"))
    asyncio.run(came_back(cluster, "s2", 21))
