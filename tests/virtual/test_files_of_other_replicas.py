"""Files of replicas that are put in the place of others: their server does not start with them."""

from __future__ import annotations

import re
from pathlib import Path
from shutil import copytree, rmtree

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.server.server import GroupServer

from .replicated_cluster import STACK, ReplicatedCluster, replicated

SERVERS = ("s0", "s1", "s2")


def folder(cluster: ReplicatedCluster, server: int, domain: int) -> Path:
    """Where the replica of a domain at a server is stored."""
    storage = cluster.servers[server].storage
    assert storage is not None
    (of_cluster,) = storage.replicas().iterdir()
    return of_cluster / f"{domain:06}"


def contents(cluster: ReplicatedCluster, server: int) -> object:
    """All that is on the disk of a server."""
    storage = cluster.servers[server].storage
    assert storage is not None
    files = storage.replicas().rglob("*")
    return storage.load(), {path: path.read_bytes() for path in files if path.is_file()}


@pytest.fixture
def errors(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Why servers did not start."""
    found: list[str] = []
    run = GroupServer.run

    async def noted(self: GroupServer) -> str:
        try:
            return await run(self)
        except UsageError as error:
            found.append(str(error))
            raise

    monkeypatch.setattr(GroupServer, "run", noted)
    return found


def put(source: Path, target: Path) -> None:
    rmtree(target)
    copytree(source, target)


def create(cluster: ReplicatedCluster, group: str, stack: str = STACK) -> None:
    cluster.create(stack, {group: SERVERS})
    cluster.send(0, [group], [b"1"])


OTHERS = {
    (1, 1): "belongs to the replica of a at s1 in domain 1 .*, and not to the replica of a at s0 ",
    (0, 2): r"belongs to the replica of b at s0 in domain 2 \(b at s0, s1, s2\) of cluster ",
    (0, 3): "2-Replicated is not of the replica of a at s0 .* paxos, whose file is 1-Paxos",
}
"""What is said of the replica of another server, of another group, and of another stack."""


def test_a_server_does_not_start_with_the_files_of_another_replica(errors: list[str]) -> None:
    """It says whose they are, and changes nothing; with its own it comes back."""
    with replicated() as cluster:
        create(cluster, "a")
        create(cluster, "b")
        create(cluster, "c", "LEADER PAXOS SKEEN-CFT")
        cluster.kill(0)
        own = folder(cluster, 0, 1)
        kept = own.with_suffix(".kept")
        copytree(own, kept)
        for (server, domain), text in OTHERS.items():
            put(folder(cluster, server, domain), own)
            before = contents(cluster, 0)
            cluster.restart(0)
            cluster.pass_time(1)
            assert errors
            assert re.search(text, errors[-1])
            assert str(own) in errors[-1]
            assert contents(cluster, 0) == before
            cluster.kill(0)
        put(kept, own)
        cluster.send(1, ["a"], [b"2"])
        cluster.restart(0)
        cluster.wait_for_servers(0, 1, 2)
        one = cluster.servers[0].server
        assert one is not None
        cluster.wait_until(lambda: one.replicas.hosted[1].numbered == 2)


def test_it_ends_if_it_learns_of_the_replica_only_when_it_has_joined(errors: list[str]) -> None:
    """It had not saved yet that there is such a replica. The files are of another cluster."""
    with replicated() as cluster, replicated(seed=2) as other:
        create(cluster, "a")
        create(other, "a")
        cluster.kill(0)
        put(folder(other, 0, 1), folder(cluster, 0, 1))
        cluster.restart(0)
        cluster.pass_time(1)
        assert re.search(r"of cluster (\w+) .*, and not to .* of cluster (?!\1)", errors[-1])
