"""Atomic multicast between groups of replicas on servers in virtual time: a server, a whole group
and all servers are killed, and come back with what they stored."""

from __future__ import annotations

import pytest

from flexgroup.client.group import Link

from ..network.replica_clients import Numbered
from .replicated_cluster import ReplicatedCluster, replicated
from .replicated_schedules import ScheduledReplicas

GROUPS = {"a": ("s0", "s1", "s2"), "b": ("s3", "s4", "s5")}
A, B = (0, 1, 2), (3, 4, 5)
STACKS = ["LEADER WHITE-BOX", "LEADER PRIMCAST", "LEADER PROTECTED-MEMORY RAMCAST"]

FIRST = [b"1", b"2", b"3"]
SECOND = [b"4", b"5", b"6"]
THIRD = [b"7", b"8", b"9"]


def bodies(seen: Numbered) -> list[bytes]:
    return [body for _, body in seen]


def listened(cluster: ReplicatedCluster, server: int, group: str) -> Numbered:
    seen: Numbered = []
    cluster.listen(server, group, seen)
    return seen


def numbered(cluster: ReplicatedCluster, *servers: int) -> set[int]:
    return {cluster.replica(server).numbered for server in servers}


@pytest.mark.parametrize("stack", STACKS)
def test_a_leader_is_killed_and_comes_back(stack: str) -> None:
    with replicated(6) as cluster:
        cluster.create(stack, GROUPS)
        seen = [listened(cluster, server, "b") for server in B]
        cluster.pass_time(0.5)
        cluster.send(0, ["a", "b"], FIRST)
        cluster.kill(0)
        cluster.send(1, ["a", "b"], SECOND)
        cluster.restart(0)
        cluster.wait_for_servers(*A, *B)
        cluster.wait_until(lambda: cluster.replica(0).numbered == 6)
        assert cluster.replica(0).incarnation > 1
        cluster.kill(1)
        cluster.send(3, ["b", "a"], THIRD)
        cluster.wait_until(lambda: cluster.replica(0).numbered == 9)
        cluster.pass_time(0.5)
        assert numbered(cluster, 0, 2, *B) == {9}
        assert [bodies(one) for one in seen] == [FIRST + SECOND + THIRD] * 3
        assert cluster.judged() == []


@pytest.mark.parametrize("stack", STACKS)
def test_a_whole_group_is_killed_and_comes_back(stack: str) -> None:
    """The other group waits for it with what goes to both, and goes on alone with the rest."""
    with replicated(7) as cluster:
        cluster.create(stack, GROUPS)
        cluster.send(0, ["a", "b"], FIRST)
        cluster.kill(*A)
        cluster.wait_for_servers(*B, 6)
        cluster.send(4, ["b"], SECOND)
        sending = cluster.begin(3, send_to_both)
        cluster.pass_time(2)
        assert not sending.is_done()
        cluster.restart(*A)
        cluster.wait_for_servers(*A, *B, 6)
        cluster.wait_until(sending.is_done)
        cluster.send(1, ["a", "b"], THIRD)
        cluster.wait_until(lambda: numbered(cluster, *A) == {7})
        cluster.wait_until(lambda: numbered(cluster, *B) == {10})
        assert cluster.judged() == []


async def send_to_both(link: Link) -> None:
    first, second = await link.attach("b"), await link.attach("a")
    await link.multicast([first, second], b"both")
    await first.confirm()


@pytest.mark.parametrize("stack", STACKS)
def test_all_are_killed_and_come_back(stack: str) -> None:
    with replicated(6) as cluster:
        cluster.create(stack, GROUPS)
        cluster.send(0, ["a", "b"], FIRST)
        cluster.send(5, ["b"], SECOND)
        cluster.kill(*A, *B)
        cluster.restart(5, 2, 0, 3, 4, 1)
        cluster.wait_for_servers(*A, *B)
        seen = listened(cluster, 4, "b")
        cluster.pass_time(1)
        cluster.send(1, ["a", "b"], THIRD)
        cluster.wait_until(lambda: numbered(cluster, *A) == {6})
        cluster.wait_until(lambda: numbered(cluster, *B) == {9})
        cluster.pass_time(0.5)
        assert bodies(seen) == THIRD
        assert cluster.judged() == []


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("stack", STACKS)
def test_members_are_given_one_sequence_under_faults(stack: str, seed: int) -> None:
    schedule = ScheduledReplicas(seed, stack, (3, 3))
    schedule.run()
    schedule.check()
    assert sum(len(listener.lives) for listener in schedule.listeners) > 6, "nobody lost a server"
    assert schedule.cluster.judged() == []
    schedule.cluster.end()
