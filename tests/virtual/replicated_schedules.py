"""Groups of replicas under seeded schedules of crashes, cuts and stops, with clients that send and
receive all the time, and come back when they lose their server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from random import Random

from flexgroup.client.connecting import connect
from flexgroup.core.errors import FlexGroupError

from .replicated_cluster import STACK, Numbered, ReplicatedCluster

LONGEST = 120.0


class Listener:
    """A member over one server. Whenever it loses that it joins again."""

    def __init__(self, cluster: ReplicatedCluster, server: int, group: str) -> None:
        self.server = server
        self.group = group
        self.lives: list[Numbered] = []
        """What it was given in each membership."""
        process = cluster.execution.process(f"m{server}", f"listener {server}")
        process.create_task(self._run(cluster.servers[server].address))

    async def _run(self, address: str) -> None:
        while True:
            try:
                link = await connect(address, name=f"listener-{self.server}", timeout=5)
                joined = await link.join(self.group)
                seen: Numbered = []
                self.lives.append(seen)
                while True:
                    message = await joined.receive()
                    seen.append((message.number, message.body))
            except FlexGroupError:
                await asyncio.sleep(0.1)

    def has_seen(self, body: bytes) -> bool:
        return any(body == seen for life in self.lives for _, seen in life)


class Sender:
    """Sends one message after another over one server, each when the one before is confirmed."""

    def __init__(self, cluster: ReplicatedCluster, server: int, groups: Sequence[str]) -> None:
        self.server = server
        self.groups = groups
        self.sent = 0
        self.confirmed: list[bytes] = []
        process = cluster.execution.process(f"m{server}", f"sender {server}")
        process.create_task(self._run(cluster.servers[server].address))

    async def _run(self, address: str) -> None:
        while True:
            try:
                link = await connect(address, name=f"sender-{self.server}", timeout=5)
                groups = [await link.attach(group) for group in self.groups]
                while True:
                    body = b"%d.%d" % (self.server, self.sent)
                    self.sent += 1
                    await link.multicast(groups, body)
                    await groups[0].confirm()
                    self.confirmed.append(body)
                    await asyncio.sleep(0.03)
            except FlexGroupError:
                await asyncio.sleep(0.1)


class ScheduledReplicas:
    def __init__(
        self,
        seed: int,
        stack: str = STACK,
        sizes: Sequence[int] = (3,),
        faults: Sequence[str] = ("kill", "stop", "cut", "part"),
        without_data: tuple[int, ...] = (),
    ) -> None:
        self._chance = Random(seed)
        self._faults = faults
        self.cluster = cluster = ReplicatedCluster(sum(sizes), seed, without_data)
        names = iter(range(sum(sizes)))
        numbers = {
            chr(97 + place): [next(names) for _ in range(size)] for place, size in enumerate(sizes)
        }
        groups: Mapping[str, Sequence[str]] = {
            name: [f"s{number}" for number in servers] for name, servers in numbers.items()
        }
        cluster.create(stack, groups)
        self.listeners = [
            Listener(cluster, server, name)
            for name, servers in numbers.items()
            for server in servers
        ]
        self.senders = [
            Sender(
                cluster,
                server,
                [name, *[other for other in numbers if other != name]]
                if self._chance.random() < 0.5
                else [name],
            )
            for name, servers in numbers.items()
            for server in servers
        ]
        self.applied: list[str] = []

    def run(self, seconds: float = 10.0) -> None:
        cluster = self.cluster
        until = cluster.execution.now() + seconds
        while cluster.execution.now() < until:
            cluster.pass_time(self._chance.uniform(0.05, 1.5))
            self._fail()
        self._heal()
        cluster.pass_time(2)
        cluster.wait_for_servers(*range(len(cluster.servers)))
        marks = [len(sender.confirmed) for sender in self.senders]
        cluster.wait_until(
            lambda: all(
                len(sender.confirmed) > mark + 3
                for sender, mark in zip(self.senders, marks, strict=True)
            )
        )
        last = [sender.confirmed[-1] for sender in self.senders if len(sender.groups) == 1]
        cluster.pass_time(1)
        assert last or self.senders

    def _fail(self) -> None:
        cluster, chance = self.cluster, self._chance
        number = chance.randrange(len(cluster.servers))
        server = cluster.servers[number]
        what = chance.choice([*self._faults, "mend", "mend"])
        self.applied.append(f"{cluster.execution.now():.2f} {what} {number}")
        if what == "mend":
            self._heal()
        elif what == "kill" and server.is_running:
            cluster.kill(number)
        elif what == "stop" and server.is_running and server.loop is not None:
            server.loop.stop()
        elif what == "cut":
            other = chance.randrange(len(cluster.servers))
            if other != number:
                cluster.execution.network.cut(f"m{number}", f"m{other}")
        elif what == "part":
            for other in range(len(cluster.servers)):
                if other != number:
                    cluster.execution.network.cut(f"m{number}", f"m{other}")
                    cluster.execution.network.cut(f"m{other}", f"m{number}")

    def _heal(self) -> None:
        self.cluster.execution.network.heal()
        for server in self.cluster.servers:
            if server.loop is not None and server.loop.is_stopped:
                server.loop.resume()
            if not server.is_running:
                self.cluster.execution._restart(server)

    def check(self) -> None:
        """All members of a group were given parts of one sequence, without gaps; whatever was
        confirmed is in it, and nothing twice."""
        for group in {listener.group for listener in self.listeners}:
            sequence: dict[int, bytes] = {}
            for listener in self.listeners:
                for life in listener.lives if listener.group == group else ():
                    numbers = [number for number, _ in life]
                    assert (
                        numbers == list(range(numbers[0], numbers[0] + len(numbers))) if life else 1
                    )
                    for number, body in life:
                        assert sequence.setdefault(number, body) == body
            assert len(set(sequence.values())) == len(sequence)
            # Some may have been delivered while no member was connected to anybody.
            holes = set(range(1, max(sequence) + 1)) - set(sequence)
            for sender in self.senders:
                if group in sender.groups:
                    missing = set(sender.confirmed) - set(sequence.values())
                    assert len(missing) <= len(holes)
