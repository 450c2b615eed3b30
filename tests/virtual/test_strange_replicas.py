"""Servers that say what no replica of a domain would say."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from flexgroup.core.errors import PeerError
from flexgroup.core.varints import varints
from flexgroup.server.hosting.replica import replica_name
from flexgroup.server.hosting.replicas import Replicas
from flexgroup.server.peers.replica_channel import DATA, GOT, HELLO

from .replicated_cluster import STACK, ReplicatedCluster, replicated

GROUPS = {"a": ("s0", "s1")}


def replicas_of(cluster: ReplicatedCluster, server: int) -> tuple[Replicas, dict[str, int]]:
    """What a server has, and the numbers of all servers."""
    one = cluster.servers[server].server
    assert one is not None
    servers = one.deployment.configuration.servers
    return one.replicas, {each.name: each.number for each in servers}


def test_a_server_without_a_replica_that_answers_for_one_is_refused() -> None:
    with replicated() as cluster:
        cluster.create(STACK, GROUPS)
        cluster.send(0, ["a"], [b"1"])
        replicas, numbers = replicas_of(cluster, 0)
        (domain,) = replicas.hosted
        with pytest.raises(PeerError, match=f"the server s2 has no replica of domain {domain}"):
            replicas.came(numbers["s2"], domain, varints([HELLO, 1, 0, 0, 0, 1]), 0)
        cluster.send(0, ["a"], [b"2"])
        assert cluster.replica(1).numbered == 2


def test_a_replica_of_another_group_or_partition_that_answers_for_one_is_refused() -> None:
    with replicated() as cluster:
        cluster.create(STACK, {"a": ("s0", "s1"), "b": ("s2",)})
        cluster.send(0, ["a"], [b"1"])
        replicas, numbers = replicas_of(cluster, 0)
        ((domain, replica),) = replicas.hosted.items()
        entry = replica.entry
        a, b = entry.groups
        others = {
            "the replica of b at s2 in domain 1 ": replica_name("c", entry, "s2"),
            r"the replica of a at s1 in domain 1 \(a at s1, s0; b at s2\)": replica_name(
                "c", replace(entry, groups=(replace(a, servers=("s1", "s0")), b)), "s1"
            ),
            "the replica of a at s1 in domain 1 .* of cluster c ": replica_name("c", entry, "s1"),
        }
        for text, said in others.items():
            name = said.encode()
            hello = varints([HELLO, 1, 1, 0, 0, 1, len(name)]) + name
            with pytest.raises(PeerError, match=f"{text}.* answers for the replica of a at s1 "):
                replicas.came(numbers["s1"], domain, hello, 0)
        cluster.send(0, ["a"], [b"2"])
        assert cluster.replica(1).numbered == 2


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        ([9], "a frame of kind 9 from a replica; kinds are 0 to 3"),
        ([GOT, 1, 1, 10_000], "a replica got 10000 frames, more than it was sent"),
        ([DATA, 1, 1, 10_000, 0], "a replica sends frame 10000, where"),
        ([HELLO, 1], "ends"),
    ],
)
def test_what_no_replica_says_is_refused(frame: list[int], text: str) -> None:
    with replicated() as cluster:
        cluster.create(STACK, GROUPS)
        cluster.send(0, ["a"], [b"1"])
        replicas, numbers = replicas_of(cluster, 0)
        (domain,) = replicas.hosted
        with pytest.raises(PeerError, match=text):
            replicas.came(numbers["s1"], domain, varints(frame), 0)


def test_what_is_said_of_a_domain_that_is_not_here_is_passed_over() -> None:
    """It may come here later, and is told again then."""
    with replicated() as cluster:
        cluster.create(STACK, GROUPS)
        replicas, numbers = replicas_of(cluster, 0)
        replicas.came(numbers["s1"], 99, varints([9]), 0)
        cluster.send(0, ["a"], [b"1"])
