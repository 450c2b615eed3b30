"""Groups of replicas under seeded schedules of crashes, cuts and stops, with clients that send and
receive all the time, and come back when they lose their server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from ..network.replica_clients import Listener, Sender, problems
from .replicated_cluster import STACK, ReplicatedCluster


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
        self.listeners: list[Listener] = []
        self.senders: list[Sender] = []
        for name, servers in numbers.items():
            everybody = [name, *[other for other in numbers if other != name]]
            for server in servers:
                chosen = everybody if self._chance.random() < 0.5 else [name]
                address = cluster.servers[server].address
                listener = Listener(f"listener-{server}", address, name)
                sender = Sender(f"sender-{server}", address, [chosen], pause=0.03)
                for client in (listener, sender):
                    process = cluster.execution.process(f"m{server}", f"client of {server}")
                    process.create_task(client.run())
                self.listeners.append(listener)
                self.senders.append(sender)
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
        for sender in self.senders:
            sender.is_over = True
        cluster.pass_time(2)

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
        """Members of each group were given parts of one sequence, with all that was confirmed."""
        assert list(problems(self.listeners, self.senders)) == []
