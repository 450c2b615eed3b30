"""Servers in virtual time with groups of replicas, and clients that send and receive there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from flexgroup.client.group import Link
from flexgroup.server.hosting.replica import Replica
from flexgroup.virtual.checks import problems

from ..network.replica_clients import Numbered
from .kept_cluster import Client, KeptCluster

STACK = "LEADER PAXOS"
GROUPS: Mapping[str, Sequence[str]] = {"a": ("s0", "s1", "s2")}


class ReplicatedCluster(KeptCluster):
    def create(
        self, stack: str = STACK, groups: Mapping[str, Sequence[str]] = GROUPS, server: int = 0
    ) -> None:
        self.have(server, lambda link: link.create_replicated(stack, groups))

    def replica(self, server: int) -> Replica:
        """The only replica at a server."""
        one = self.servers[server].server
        assert one is not None
        (replica,) = one.replicas.hosted.values()
        return replica

    def listen(self, server: int, group: str, seen: Numbered) -> Client[None]:
        """Have a client of a server join a group, and put all that it is given into a list."""

        async def work(link: Link) -> None:
            joined = await link.join(group)
            while True:
                message = await joined.receive()
                seen.append((message.number, message.body))

        return self.begin(server, work)

    def send(self, server: int, groups: Sequence[str], bodies: Sequence[bytes]) -> None:
        """Have a client of a server send these to the groups, of which its server has a replica of
        the first, and wait until each is confirmed."""
        self.have(server, lambda link: send_confirmed(link, groups, bodies))

    def judged(self) -> list[tuple[str, str]]:
        """What is wrong with what the servers have recorded."""
        for server in self.servers:
            server.finish_trace()
        return [(problem.kind, problem.text) for problem in problems(self.execution)]


async def send_confirmed(link: Link, groups: Sequence[str], bodies: Sequence[bytes]) -> None:
    first, *others = [await link.attach(group) for group in groups]
    for body in bodies:
        await link.multicast([first, *others], body)
        await first.confirm()


@contextmanager
def replicated(
    servers: int = 3, seed: int = 1, without_data: tuple[int, ...] = ()
) -> Iterator[ReplicatedCluster]:
    cluster = ReplicatedCluster(servers, seed, without_data)
    yield cluster
    cluster.end()
