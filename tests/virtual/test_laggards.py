"""A replica that is down while much goes by: the others keep what it lacks on the disk and not in
memory, and it gets all of it when it is back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flexgroup.client.group import Link
from flexgroup.protocols.parts import paxos_packets
from flexgroup.protocols.paxos import CUT
from flexgroup.server.peers import replica_channel

from ..network.replica_clients import Numbered
from .replicated_cluster import GROUPS, STACK, ReplicatedCluster, replicated

SLOTS = 5 * CUT
"""How many batches go by, of a few messages each."""

AT_ONCE = 4


async def send_batches(link: Link, first: int, count: int) -> None:
    group = await link.attach("a")
    for batch in range(first, first + count):
        await group.send_all([b"%d.%d" % (batch, place) for place in range(AT_ONCE)])
        await group.confirm()


def bodies(first: int, count: int) -> list[bytes]:
    return [
        b"%d.%d" % (batch, place)
        for batch in range(first, first + count)
        for place in range(AT_ONCE)
    ]


def numbered_from(first: int, sent: list[bytes]) -> Numbered:
    return list(enumerate(sent, first))


def in_memory(cluster: ReplicatedCluster, server: int) -> int:
    """How many slots a replica has in memory, in whatever place most of them are."""
    host = cluster.replica(server).domain.host
    log: Any = host.stack.layers[1]
    stored = host.stored[1]
    return max(len(log.ledger.votes), len(stored.log) + len(stored.archive))


def segments(cluster: ReplicatedCluster, server: int) -> list[Path]:
    storage = cluster.servers[server].storage
    assert storage is not None
    return sorted(storage.replicas().rglob("*.1-*"))


def test_what_a_replica_lacks_is_on_the_disk_of_the_others_until_it_is_back() -> None:
    with replicated() as cluster:
        cluster.create(STACK, GROUPS)
        cluster.have(0, lambda link: send_batches(link, 0, 3))
        cluster.kill(2)
        cluster.wait_for_servers(0, 1)
        cluster.have(1, lambda link: send_batches(link, 3, SLOTS))
        for server in (0, 1):
            assert in_memory(cluster, server) < 2 * CUT
            assert segments(cluster, server)
        # Who leads starts again in between: what it has set aside is found again.
        cluster.kill(0)
        cluster.restart(0)
        cluster.wait_for_servers(0, 1)
        assert in_memory(cluster, 0) < 2 * CUT
        cluster.restart(2)
        cluster.wait_for_servers(0, 1, 2)
        total = (3 + SLOTS) * AT_ONCE
        cluster.wait_until(lambda: cluster.replica(2).numbered == total)
        assert in_memory(cluster, 2) < 2 * CUT
        seen: list[Numbered] = [[], [], []]
        for server in range(3):
            cluster.listen(server, "a", seen[server])
        cluster.pass_time(0.5)
        cluster.have(2, lambda link: send_batches(link, 3 + SLOTS, CUT + 1))
        cluster.pass_time(0.5)
        assert seen[0] == seen[1] == seen[2] == numbered_from(total + 1, bodies(3 + SLOTS, CUT + 1))
        # All have it now, and nobody keeps it.
        for server in range(3):
            assert segments(cluster, server) == []
            assert in_memory(cluster, server) < 2 * CUT
        assert cluster.judged() == []


def test_who_lacks_more_than_a_channel_keeps_gets_it_piece_by_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All at once, it would be given up and start again, and lack as much as before, for ever."""
    monkeypatch.setattr(replica_channel, "MOST_BYTES", 50_000)
    monkeypatch.setattr(paxos_packets, "LARGE", 10_000)
    with replicated() as cluster:
        cluster.create()
        cluster.kill(2)
        cluster.wait_for_servers(0, 1)
        cluster.send(0, ["a"], [b"x" * 5_000] * 40)
        cluster.restart(2)
        cluster.wait_for_servers(0, 1, 2)
        cluster.wait_until(lambda: cluster.replica(2).numbered == 40)
        assert cluster.replica(2).incarnation == 2
