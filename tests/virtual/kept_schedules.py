"""Random schedules of servers that keep messages, and of clients that read and send them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

from flexgroup.client.connecting import connect
from flexgroup.client.errors import NotKept
from flexgroup.client.group import Group
from flexgroup.core.errors import FlexGroupError

from .kept_cluster import STACK, KeptCluster, all_kept

GROUP = "orders"


class Reader:
    """A process that reads the group from where it was, whenever it has lost its server, and sends
    to it. It keeps what it was given under each number."""

    def __init__(self, cluster: KeptCluster, name: str, server: int, random: Random) -> None:
        self.name = name
        self.given: dict[int, bytes] = {}
        self.confirmed: list[bytes] = []
        self.problems: list[str] = []
        self._server = server
        self._cluster = cluster
        self._random = random
        self.has_stopped = False
        """It sends nothing more."""
        self._sent = 0
        self._sending: asyncio.Task[None] | None = None
        process = cluster.execution.process(f"m{server}", name)
        process.create_task(self._run())

    async def _run(self) -> None:
        while True:
            with suppress(FlexGroupError):
                await self._read(await self._join())
            if self._sending is not None:
                self._sending.cancel()
            await asyncio.sleep(0.1)

    async def _join(self) -> Group[bytes]:
        address = self._cluster.servers[self._server].address
        link = await connect(address, name=self.name, timeout=20)
        since = max(self.given, default=0) + 1
        try:
            group = await link.join(GROUP, STACK, keep=10_000, since=since)
        except NotKept as error:
            self.problems.append(f"{self.name}: {error}")
            raise
        self._sending = asyncio.get_running_loop().create_task(self._send(group))
        return group

    async def _read(self, group: Group[bytes]) -> None:
        async for message in group:
            expected = max(self.given, default=0) + 1
            if message.number != expected:
                self.problems.append(
                    f"{self.name} was given {message.number} where {expected} was due"
                )
            self.given[message.number] = message.body

    async def _send(self, group: Group[bytes]) -> None:
        with suppress(FlexGroupError):
            while not self.has_stopped:
                await asyncio.sleep(self._random.uniform(0.0, 0.2))
                bodies = []
                for _ in range(self._random.choice((1, 1, 5))):
                    self._sent += 1
                    bodies.append(f"{self.name} {self._sent}".encode())
                await group.send_all(bodies)
                await group.confirm()
                self.confirmed += bodies


def run(seed: int, seconds: float = 8.0, most_dead: int | None = None) -> tuple[list[str], int]:
    """What is wrong after servers were killed, cut, stopped and started again for a while, and how
    many messages were confirmed."""
    random = Random(seed)
    size = random.choice((2, 3, 3, 4))
    cluster = KeptCluster(size, seed)
    readers = [
        Reader(cluster, f"r{number}", number % size, Random(f"{seed} {number}"))
        for number in range(size + 1)
    ]
    until = cluster.execution.now() + seconds
    story = []
    while cluster.execution.now() < until:
        cluster.pass_time(random.uniform(0.0, 1.0))
        what = _go_wrong(cluster, random, most_dead)
        story.append(f"{cluster.execution.now():.3f} {what}")
    cluster.execution._heal()
    for number, server in enumerate(cluster.servers):
        if server.loop is not None and server.loop.is_stopped:
            server.loop.resume()
        if not server.is_running:
            cluster.restart(number)
    cluster.wait_for_servers(*range(size))
    cluster.pass_time(3.0)
    for reader in readers:
        reader.has_stopped = True
    cluster.pass_time(2.0)
    problems = [problem for reader in readers for problem in reader.problems]
    confirmed = [body for reader in readers for body in reader.confirmed]
    count = max(max(reader.given, default=0) for reader in readers)
    for reader in readers:
        if len(reader.given) != count:
            problems.append(f"{reader.name} was given {len(reader.given)} of {count}")
    logs = [
        cluster.have(number, lambda link: all_kept(link, GROUP, count)) for number in range(size)
    ]
    for number, log in enumerate(logs):
        if log != logs[0]:
            problems.append(f"the log of {number} is another than that of 0")
    order = dict(logs[0])
    bodies = list(order.values())
    if len(set(bodies)) != len(bodies):
        problems.append("a message is kept twice")
    lost = set(confirmed) - set(bodies)
    if lost:
        problems.append(f"confirmed and lost: {sorted(lost)[:5]}")
    for reader in readers:
        wrong = [n for n, body in reader.given.items() if order.get(n) != body]
        if wrong:
            problems.append(f"{reader.name} was given something else as {wrong[:5]}")
    cluster.end()
    if problems:
        problems += [f"seed {seed}, {size} servers", *story]
    return problems, len(confirmed)


def _go_wrong(cluster: KeptCluster, random: Random, most_dead: int | None) -> str:
    servers = cluster.servers
    one, other = random.sample(range(len(servers)), 2)
    dead = [number for number, server in enumerate(servers) if not server.is_running]
    loop = servers[one].loop
    assert loop is not None
    match random.choice(("kill", "kill all", "cut", "stop", "forgetful", "heal", "start", "start")):
        case "kill" if one not in dead and (most_dead is None or len(dead) < most_dead):
            cluster.kill(one)
            return f"kill {one}"
        case "kill all" if most_dead is None and random.random() < 0.5:
            alive = [number for number in range(len(servers)) if number not in dead]
            for number in alive:
                cluster.kill(number)
                cluster.pass_time(random.choice((0.0, 0.0, 0.001, 0.003)))
            return f"kill all: {alive}"
        case "cut":
            cluster.execution.network.cut(f"m{one}", f"m{other}")
            return f"cut {one} {other}"
        case "stop" if one not in dead and not loop.is_stopped:
            loop.stop()
            return f"stop {one}"
        case "forgetful":
            storage = servers[one].storage
            assert storage is not None
            storage.fail()
            return f"forgetful {one}"
        case "heal":
            cluster.execution._heal()
            for server in servers:
                if server.loop is not None and server.loop.is_stopped:
                    server.loop.resume()
            return "heal"
        case "start":
            cluster.restart(*dead)
            return f"start {dead}"
    return "nothing"
