"""Groups of replicas on servers in virtual time: they go on when servers die, and come back with
what they stored."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from flexgroup.client.errors import BadStack, GroupExists, NotAllowed, NotHere, Refusal
from flexgroup.client.group import Link
from flexgroup.membership.messages import Commit, ControlMessage
from flexgroup.server.peers import replica_channel

from ..network.replica_clients import Numbered
from .replicated_cluster import GROUPS, STACK, ReplicatedCluster, replicated, send_confirmed
from .replicated_schedules import ScheduledReplicas

FIRST = [b"1", b"2", b"3"]
SECOND = [b"4", b"5", b"6"]
THIRD = [b"7", b"8", b"9"]


def numbered(*parts: list[bytes]) -> Numbered:
    return list(enumerate([body for part in parts for body in part], 1))


def domain_numbers(cluster: ReplicatedCluster, server: int) -> list[int]:
    one = cluster.servers[server].server
    assert one is not None
    return sorted(one.replicas.hosted)


# What goes on.


def test_the_rest_goes_on_with_the_same_stack_when_the_leader_is_killed() -> None:
    with replicated() as cluster:
        cluster.create()
        seen: list[Numbered] = [[], [], []]
        for server in range(3):
            cluster.listen(server, "a", seen[server])
        cluster.pass_time(0.5)
        cluster.send(0, ["a"], FIRST)
        domains = domain_numbers(cluster, 1)
        cluster.kill(0)
        cluster.send(1, ["a"], SECOND)
        cluster.pass_time(0.5)
        assert seen[1] == seen[2] == numbered(FIRST, SECOND)
        assert seen[0] == numbered(FIRST)
        assert domain_numbers(cluster, 1) == domains
        assert [cluster.replica(server).incarnation for server in (1, 2)] == [1, 1]
        assert cluster.judged() == []


def test_an_ordinary_stack_of_the_same_servers_begins_anew_meanwhile() -> None:
    """So that a replica that is not disturbed is not so because nothing happened."""
    with replicated() as cluster:
        cluster.create()

        async def join(link: Link) -> None:
            await link.join("ordinary", "ABCAST")
            await (await link.join("ordinary2", "ABCAST")).receive()

        for server in range(3):
            cluster.begin(server, join)
        cluster.pass_time(1)
        one = cluster.servers[1].server
        assert one is not None
        before = [hosted.entry.number for hosted in one.deployment.domains]
        cluster.kill(0)
        cluster.wait_for_servers(1, 2)
        assert before
        assert before != [hosted.entry.number for hosted in one.deployment.domains]
        assert cluster.replica(1).incarnation == 1


def test_nothing_is_delivered_without_a_majority_and_all_of_it_when_there_is_one_again() -> None:
    with replicated() as cluster:
        cluster.create()
        seen: Numbered = []
        cluster.listen(2, "a", seen)
        cluster.pass_time(0.5)
        cluster.send(2, ["a"], FIRST)
        cluster.kill(0, 1)
        sending = cluster.begin(2, lambda link: send_all(link, SECOND))
        cluster.pass_time(5)
        assert not sending.is_done()
        assert seen == numbered(FIRST)
        cluster.restart(0)
        cluster.wait_until(sending.is_done)
        cluster.pass_time(0.5)
        assert seen == numbered(FIRST, SECOND)


async def send_all(link: Link, bodies: list[bytes]) -> None:
    group = await link.attach("a")
    await group.send_all(bodies)
    await group.confirm()


# What comes back.


def test_a_server_comes_back_with_what_it_stored_and_is_told_what_it_missed() -> None:
    with replicated() as cluster:
        cluster.create()
        cluster.send(0, ["a"], FIRST)
        cluster.kill(0)
        cluster.send(1, ["a"], SECOND)
        cluster.restart(0)
        cluster.wait_for_servers(0, 1, 2)
        cluster.wait_until(lambda: cluster.replica(0).numbered == 6)
        assert cluster.replica(0).incarnation > 1
        seen: Numbered = []
        cluster.listen(0, "a", seen)
        cluster.pass_time(0.5)
        cluster.kill(1)
        cluster.send(0, ["a"], THIRD)
        cluster.pass_time(0.5)
        assert seen == numbered(FIRST, SECOND, THIRD)[6:]


def test_all_servers_come_back_with_what_was_confirmed() -> None:
    with replicated() as cluster:
        cluster.create()
        cluster.send(0, ["a"], FIRST)
        cluster.kill(0, 1, 2)
        cluster.restart(2, 0, 1)
        cluster.wait_for_servers(0, 1, 2)
        seen: Numbered = []
        cluster.listen(1, "a", seen)
        cluster.pass_time(1)
        cluster.send(0, ["a"], SECOND)
        cluster.pass_time(0.5)
        assert seen == numbered(FIRST, SECOND)[3:]


@pytest.mark.parametrize("without_data", [(), (0, 1, 2)])
def test_who_missed_that_the_groups_were_created_takes_part_all_the_same(
    without_data: tuple[int, ...],
) -> None:
    """It has accepted that they are, was stopped before it was told that all have, and was left
    out before it went on: so it can have promised nothing to the others."""
    with replicated(without_data=without_data) as cluster:
        first, late = [cluster.servers[number].server for number in (0, 2)]
        loop = cluster.servers[2].loop
        assert first is not None
        assert late is not None
        assert loop is not None
        say, number = first.membership.say, late.membership.number

        def stop_instead_of_committing(server: int, message: ControlMessage) -> None:
            if server == number and isinstance(message, Commit):
                loop.stop()
            else:
                say(server, message)

        first.membership.say = stop_instead_of_committing
        cluster.create()
        assert loop.is_stopped
        cluster.wait_for_servers(0, 1)
        first.membership.say = say
        loop.resume()
        cluster.wait_for_servers(0, 1, 2)
        seen: Numbered = []
        cluster.listen(2, "a", seen)
        cluster.pass_time(0.5)
        cluster.send(0, ["a"], FIRST)
        cluster.kill(1)
        cluster.send(2, ["a"], SECOND)
        cluster.pass_time(0.5)
        assert seen == numbered(FIRST, SECOND)
        assert cluster.judged() == []


TWO_GROUPS = {"a": ("s0", "s1", "s2"), "b": ("s3", "s4", "s5")}

BETWEEN_GROUPS = [
    f"LEADER PAXOS {name}" for name in ("SKEEN-CFT", "DF-CFT", "DCC-CFT", "FT-ABCAST")
]


@pytest.mark.parametrize("stack", BETWEEN_GROUPS)
def test_a_server_of_two_groups_comes_back_and_misses_nothing(stack: str) -> None:
    with replicated(6) as cluster:
        cluster.create(stack, TWO_GROUPS)
        cluster.send(0, ["a", "b"], FIRST)
        cluster.kill(0)
        cluster.send(1, ["a", "b"], SECOND)
        cluster.restart(0)
        cluster.wait_for_servers(*range(6))
        cluster.wait_until(lambda: cluster.replica(0).numbered == 6)
        seen: list[Numbered] = [[] for _ in range(6)]
        for server in range(6):
            cluster.listen(server, "a" if server < 3 else "b", seen[server])
        cluster.pass_time(0.5)
        cluster.kill(1)
        cluster.send(0, ["a", "b"], THIRD)
        cluster.send(3, ["b", "a"], FIRST)
        cluster.pass_time(0.5)
        whole = numbered(FIRST, SECOND, THIRD, FIRST)[6:]
        assert [seen[server] for server in (0, 2, 3, 4, 5)] == [whole] * 5


@pytest.mark.parametrize("stack", BETWEEN_GROUPS)
def test_all_servers_of_two_groups_come_back(stack: str) -> None:
    """Nothing is given twice, nothing is skipped, and no group waits for the other for ever."""
    with replicated(6) as cluster:
        cluster.create(stack, TWO_GROUPS)
        cluster.send(0, ["a", "b"], FIRST)
        cluster.send(4, ["b", "a"], FIRST)
        # These are under way, some here and some there, when all servers die.
        for server, groups in ((1, ["a", "b"]), (5, ["b", "a"])):
            cluster.begin(server, send_to(groups, SECOND))
        cluster.pass_time(0.02)
        cluster.kill(*range(6))
        cluster.restart(*range(6))
        cluster.wait_for_servers(*range(6))
        seen: list[Numbered] = [[] for _ in range(6)]
        for server in range(6):
            cluster.listen(server, "a" if server < 3 else "b", seen[server])
        cluster.pass_time(1)
        cluster.send(2, ["a", "b"], THIRD)
        cluster.send(3, ["b", "a"], THIRD)
        cluster.pass_time(0.5)
        assert len({cluster.replica(server).numbered for server in range(6)}) == 1
        assert all(order == seen[0] for order in seen)
        assert [body for _, body in seen[0][-6:]] == THIRD * 2
        assert [number for number, _ in seen[0]] == sorted({number for number, _ in seen[0]})


def send_to(groups: list[str], bodies: list[bytes]) -> Callable[[Link], Coroutine[Any, Any, None]]:
    return lambda link: send_confirmed(link, groups, bodies)


def test_a_server_that_comes_back_without_what_it_stored_takes_no_part() -> None:
    """It may have promised something to the others that it does not remember."""
    with replicated(without_data=(0,)) as cluster:
        cluster.create()
        cluster.send(0, ["a"], FIRST)
        cluster.kill(0)
        cluster.wait_for_servers(1, 2)
        cluster.restart(0)
        cluster.wait_for_servers(0, 1, 2)
        assert domain_numbers(cluster, 0) == []
        with pytest.raises(NotHere, match=r"lost its replica of 'a'.*--data.*s0, s1, s2"):
            cluster.have(0, lambda link: link.join("a"))
        cluster.send(1, ["a"], SECOND)
        # Nobody waits for it to lead, although its server is there.
        assert cluster.replica(2).suspected == {0}
        cluster.kill(1)
        cluster.pass_time(3)
        cluster.restart(1)
        cluster.wait_for_servers(0, 1, 2)
        cluster.send(2, ["a"], THIRD)
        assert cluster.replica(2).numbered == 9


def test_a_stack_that_stores_nothing_does_not_start_again() -> None:
    with replicated() as cluster:
        cluster.create("LEADER")
        seen: Numbered = []
        cluster.listen(1, "a", seen)
        cluster.pass_time(0.5)
        cluster.send(0, ["a"], FIRST)
        for other in (0, 1):
            cluster.execution.network.cut("m2", f"m{other}")
            cluster.execution.network.cut(f"m{other}", "m2")
        cluster.wait_for_servers(0, 1)
        cluster.execution.network.heal()
        cluster.wait_for_servers(0, 1, 2)
        cluster.kill(0)
        cluster.wait_for_servers(1, 2)
        cluster.restart(0)
        cluster.wait_for_servers(0, 1, 2)
        for server in (0, 2):
            assert domain_numbers(cluster, server) == []
            with pytest.raises(NotHere, match="the stack does not store"):
                cluster.have(server, lambda link: link.join("a"))
        cluster.send(1, ["a"], SECOND)
        cluster.pass_time(0.5)
        assert seen == numbered(FIRST, SECOND)


def test_a_server_that_was_cut_off_starts_its_replica_again_without_data_too() -> None:
    """What it stored is still in its memory, since it did not fail."""
    with replicated(without_data=(0, 1, 2)) as cluster:
        cluster.create()
        cluster.send(0, ["a"], FIRST)
        for other in (0, 1):
            cluster.execution.network.cut("m2", f"m{other}")
            cluster.execution.network.cut(f"m{other}", "m2")
        cluster.wait_until(lambda: cluster.execution.size_of(cluster.servers[0]) == 2)
        cluster.send(0, ["a"], SECOND)
        assert cluster.replica(2).numbered == 3
        cluster.execution.network.heal()
        cluster.wait_for_servers(0, 1, 2)
        cluster.wait_until(lambda: cluster.replica(2).numbered == 6)
        assert cluster.replica(2).incarnation == 2
        assert [cluster.replica(server).incarnation for server in (0, 1)] == [1, 1]
        assert cluster.judged() == []


def test_who_gets_nothing_is_given_up_and_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica that is stopped for less than servers wait for each other, while much is sent."""
    with replicated() as cluster:
        cluster.create()
        cluster.send(0, ["a"], FIRST)
        monkeypatch.setattr(replica_channel, "MOST_BYTES", 500)
        loop = cluster.servers[2].loop
        assert loop is not None
        loop.stop()
        cluster.send(0, ["a"], [b"x" * 100 for _ in range(10)])
        assert cluster.replica(0).kept_for(2) == 0
        loop.resume()
        monkeypatch.undo()
        cluster.wait_until(lambda: cluster.replica(2).numbered == 13)
        assert cluster.replica(2).incarnation == 2
        cluster.send(2, ["a"], SECOND)


# What is refused.


@pytest.mark.parametrize(
    ("stack", "groups", "error", "text"),
    [
        (STACK, {"a": ("s0", "s1"), "b": ("s1", "s2")}, NotAllowed, "'s1' twice"),
        (STACK, {"a": ("s0", "s9")}, NotHere, "no server 's9' now; there are s0, s1, s2"),
        (STACK, {"a": ("s0",), "b": ()}, NotAllowed, "without replicas"),
        (STACK, {"there": ("s0", "s1")}, GroupExists, "there is a group 'there'"),
        ("ABCAST", {"a": ("s0", "s1")}, BadStack, "knows no replicas.*create its groups with"),
        ("PAXOS", {"a": ("s0", "s1")}, BadStack, "put a layer that gives it below"),
        ("LEADER PAXOS SAFE", {"a": ("s0", "s1")}, BadStack, "has 'safe' above its replicas"),
        ("FIFO LEADER WHITE-BOX", {"a": ("s0", "s1")}, BadStack, "crash: fifo does not"),
        ("LOG DCC-CFT", {"a": ("s0", "s1")}, BadStack, "crash: log does not"),
    ],
)
def test_what_cannot_be_is_refused(
    stack: str, groups: dict[str, tuple[str, ...]], error: type[Refusal], text: str
) -> None:
    with replicated() as cluster:
        cluster.create(STACK, {"there": ("s2",)})
        with pytest.raises(error, match=text):
            cluster.create(stack, groups)
        cluster.create(STACK, {"a": ("s0", "s1")})


def test_an_ordinary_group_cannot_have_such_a_stack() -> None:
    with replicated() as cluster, pytest.raises(BadStack, match="create_replicated"):
        cluster.have(0, lambda link: link.join("a", STACK))


def test_members_connect_to_servers_with_replicas() -> None:
    with replicated() as cluster:
        cluster.create(STACK, {"a": ("s0", "s1"), "b": ("s2",)})
        with pytest.raises(NotHere, match=r"no replica at the server 's2'; connect.*s0, s1"):
            cluster.have(2, lambda link: link.join("a"))

        async def send_elsewhere(link: Link) -> None:
            group = await link.attach("a")
            await group.send(b"x")
            await group.confirm()
            await group.receive(1)

        with pytest.raises(Refusal, match="send it over one of s0, s1"):
            cluster.have(2, send_elsewhere)


def test_a_domain_ends_with_its_last_group() -> None:
    with replicated() as cluster:
        cluster.create(STACK, {"a": ("s0", "s1"), "b": ("s2",)})

        async def destroy(link: Link, name: str) -> None:
            group = await link.attach(name)
            await group.destroy()

        cluster.have(0, lambda link: destroy(link, "a"))
        assert len(domain_numbers(cluster, 2)) == 1
        cluster.send(2, ["b"], FIRST)
        cluster.have(2, lambda link: destroy(link, "b"))
        cluster.pass_time(0.5)
        assert [domain_numbers(cluster, server) for server in range(3)] == [[], [], []]
        cluster.create(STACK, {"a": ("s0", "s1", "s2")})
        cluster.send(1, ["a"], FIRST)
        assert cluster.judged() == []


def test_it_is_told_which_servers_have_replicas() -> None:
    with replicated() as cluster:
        cluster.create()
        cluster.send(0, ["a"], FIRST)

        async def ask(link: Link) -> tuple[tuple[str, ...], tuple[str, ...], object]:
            info = await (await link.attach("a")).info()
            (domain,) = (await link.inspect())["replicas"]
            return info.servers, info.promises, domain["here"]["delivered"]

        servers, promises, delivered = cluster.have(1, ask)
        assert servers == GROUPS["a"]
        assert {"acyclic order", "uniform agreement"} <= set(promises)
        assert delivered == 3


# Schedules.


@pytest.mark.parametrize("seed", range(6))
def test_members_are_given_one_sequence_under_faults(seed: int) -> None:
    schedule = ScheduledReplicas(seed)
    schedule.run()
    schedule.check()
    assert sum(len(listener.lives) for listener in schedule.listeners) > 3, "nobody lost a server"
    assert schedule.cluster.judged() == []
    schedule.cluster.end()
