"""Groups that keep their messages on the disks of servers, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random

import pytest

from flexgroup.client.errors import BadStack, NotAllowed, NotKept, ServerClosing
from flexgroup.client.group import Group, Link
from flexgroup.client.message import View
from flexgroup.core.errors import UsageError
from flexgroup.virtual.checks import problems
from flexgroup.virtual.execution import Execution
from flexgroup.virtual.schedule import Load, draw_schedule

from .kept_cluster import STACK, KeptCluster, all_kept, received, send_confirmed
from .kept_schedules import run

FAULTS = ("kill", "kill", "stop", "cut", "part", "outage", "slow", "forgetful")
BODIES = [b"%d" % number for number in range(1, 21)]
NUMBERED = list(enumerate(BODIES, 1))


@pytest.fixture
def cluster() -> Iterator[KeptCluster]:
    made = KeptCluster()
    yield made
    made.end()


def test_who_joins_is_given_what_was_kept_with_the_same_numbers(cluster: KeptCluster) -> None:
    cluster.have(0, lambda link: send_confirmed(link, "orders", BODIES))
    for server in range(3):
        assert cluster.have(server, lambda link: all_kept(link, "orders", 20)) == NUMBERED


def test_what_comes_follows_what_was_kept(cluster: KeptCluster) -> None:
    """Without a gap and without repetition, though it is sent all the time."""
    sending = cluster.begin(0, lambda link: send_confirmed(link, "orders", BODIES * 10))
    cluster.pass_time(0.1)
    assert not sending.is_done()
    numbered = list(enumerate(BODIES * 10, 1))
    assert cluster.have(1, lambda link: all_kept(link, "orders", 200)) == numbered


def test_a_process_goes_on_where_it_was(cluster: KeptCluster) -> None:
    async def from_number(link: Link, number: int) -> list[int]:
        orders = await link.join("orders", since=number)
        return [message.number for message in await received(orders, 21 - number)]

    cluster.have(0, lambda link: send_confirmed(link, "orders", BODIES))
    assert cluster.have(1, lambda link: from_number(link, 18)) == [18, 19, 20]
    assert cluster.have(2, lambda link: from_number(link, 21)) == []


def test_who_does_not_want_its_own_messages_gets_those_of_others_with_their_numbers(
    cluster: KeptCluster,
) -> None:
    async def talk(link: Link) -> list[tuple[int, bytes]]:
        orders = await link.join("orders", process="ann", own=False, since=0)
        others = await received(orders, 20)
        await orders.send(b"mine")
        await orders.confirm()
        return [(message.number, message.body) for message in others]

    cluster.have(0, lambda link: send_confirmed(link, "orders", BODIES))
    assert cluster.have(1, talk) == NUMBERED
    cluster.have(0, lambda link: send_confirmed(link, "orders", [b"after"]))

    async def without_mine(link: Link) -> list[int]:
        orders = await link.join("orders", process="ann", own=False, since=20)
        return [message.number for message in await received(orders, 2)]

    assert cluster.have(2, without_mine) == [20, 22]


def test_views_stand_where_they_were_among_messages_that_are_read_later(
    cluster: KeptCluster,
) -> None:
    """A member is far behind when another one joins; it is told of that in its place."""

    async def slow(link: Link) -> list[str]:
        orders = await link.join("orders", process="slow", since=0)
        items = []
        events = orders.events()
        for _ in range(2003):
            item = await anext(events)
            items.append("view" if isinstance(item, View) else str(item.number))
            if len(items) == 1:
                await asyncio.sleep(5)
        return items

    async def many(link: Link) -> None:
        orders = await link.join("orders", STACK, keep=5000)
        await orders.send_all([b"x"] * 2000)
        await orders.confirm()

    async def late(link: Link) -> None:
        orders = await link.join("orders", process="late")
        await orders.send(b"last")
        await orders.confirm()
        await asyncio.sleep(30)

    cluster.have(0, many)
    reading = cluster.begin(1, slow)
    cluster.pass_time(1.0)
    cluster.begin(2, late)
    cluster.wait_until(reading.is_done)
    numbers = [str(number) for number in range(1, 2001)]
    assert reading.result() == ["view", *numbers, "view", "2001"]


def test_what_was_confirmed_is_there_when_all_were_killed(cluster: KeptCluster) -> None:
    cluster.have(0, lambda link: send_confirmed(link, "orders", BODIES))
    cluster.kill(0, 1, 2)
    cluster.restart(1, 2)
    cluster.wait_for_servers(1, 2)
    for server in (1, 2):
        assert cluster.have(server, lambda link: all_kept(link, "orders", 20)) == NUMBERED


def test_a_server_that_was_away_gets_what_it_lacks(cluster: KeptCluster) -> None:
    cluster.have(0, lambda link: send_confirmed(link, "orders", BODIES[:5]))
    cluster.kill(2)
    cluster.wait_for_servers(0, 1)
    cluster.have(1, lambda link: send_confirmed(link, "orders", BODIES[5:]))
    cluster.restart(2)
    cluster.wait_for_servers(0, 1, 2)
    assert cluster.have(2, lambda link: all_kept(link, "orders", 20)) == NUMBERED


def test_a_new_server_gets_everything() -> None:
    cluster = KeptCluster(4)
    cluster.kill(3)
    cluster.wait_for_servers(0, 1, 2)
    cluster.have(0, lambda link: send_confirmed(link, "orders", BODIES))
    cluster.restart(3)
    cluster.wait_for_servers(0, 1, 2, 3)
    assert cluster.have(3, lambda link: all_kept(link, "orders", 20)) == NUMBERED
    cluster.end()


def test_a_disk_that_cannot_be_written_ends_the_server_and_nothing_is_lost(
    cluster: KeptCluster,
) -> None:
    cluster.have(0, lambda link: send_confirmed(link, "orders", BODIES[:5]))
    storage = cluster.servers[1].storage
    assert storage is not None
    storage.fail()
    cluster.have(0, lambda link: send_confirmed(link, "orders", BODIES[5:]))
    cluster.wait_for_servers(0, 2)
    storage.go_on()
    cluster.wait_for_servers(0, 1, 2)
    assert cluster.have(1, lambda link: all_kept(link, "orders", 20)) == NUMBERED


def test_numbers_that_are_not_kept_are_refused_with_those_that_are(cluster: KeptCluster) -> None:
    async def many(link: Link) -> None:
        orders = await link.join("orders", STACK, keep=10)
        for _ in range(30):
            await orders.send_all([b"x"] * 10)
            await orders.confirm()

    async def first_kept(link: Link) -> int:
        orders = await link.join("orders", since=0)
        return (await orders.receive()).number

    cluster.have(0, many)
    first = cluster.have(1, first_kept)
    assert 200 < first <= 291
    with pytest.raises(
        NotKept, match=f"not kept any more, the first that is has the number {first}"
    ):
        cluster.have(1, lambda link: link.join("orders", since=first - 1))
    with pytest.raises(NotKept, match="the last one has the number 300; join with since=301"):
        cluster.have(1, lambda link: link.join("orders", since=302))


def test_a_member_that_falls_behind_what_is_kept_is_told(cluster: KeptCluster) -> None:
    async def sleep_and_read(link: Link) -> None:
        orders = await link.join("orders", since=0)
        await asyncio.sleep(10)
        await received(orders, 9000)

    async def many(link: Link) -> None:
        orders = await link.join("orders", STACK, keep=100)
        await orders.send_all([b"x"] * 1200)
        await orders.confirm()

    cluster.have(0, lambda link: send_confirmed(link, "orders", [b"x"]))
    cluster.have(0, many)
    reading = cluster.begin(1, sleep_and_read)
    for _ in range(3):
        cluster.have(0, many)
    cluster.wait_until(reading.is_done)
    with pytest.raises(ServerClosing, match="is not kept any more, the first that is"):
        reading.result()


def test_so_is_one_that_has_had_all_from_the_first_message_on(cluster: KeptCluster) -> None:
    """It has come to the end of what is kept before there was anything. What is sent while a server
    is not there is more than is kept, and given to nobody before another domain begins."""
    numbers: list[int] = []

    async def send_and_read(link: Link) -> None:
        orders = await link.join("orders", STACK, keep=20, since=0)
        await orders.send_all(BODIES[:3])
        await orders.confirm()
        loop = cluster.servers[2].loop
        assert loop is not None
        loop.stop()
        await orders.send_all([b"x"] * 300)
        async for message in orders:
            numbers.append(message.number)

    with pytest.raises(ServerClosing, match="message 4 of 'orders' is not kept any more"):
        cluster.have(1, send_and_read)
    assert numbers == [1, 2, 3]


@pytest.mark.parametrize("stack", ["ABCAST", "RELIABLE ATOMIC", "RELIABLE SAFE"])
def test_stacks_that_do_not_give_one_safe_sequence_are_refused(
    cluster: KeptCluster, stack: str
) -> None:
    with pytest.raises(BadStack, match="write SAFE on top of a stack with a total order"):
        cluster.have(0, lambda link: link.join("orders", stack, keep=10))


def test_clients_of_a_server_without_data_are_told_where_to_go() -> None:
    cluster = KeptCluster(without_data=(2,))
    cluster.have(0, lambda link: send_confirmed(link, "orders", BODIES))
    assert cluster.have(1, lambda link: all_kept(link, "orders", 20)) == NUMBERED
    with pytest.raises(NotKept, match=r"connect to one that does \(s0, s1\)"):
        cluster.have(2, lambda link: link.join("orders"))
    cluster.end()


def test_no_group_is_kept_by_half_of_the_servers() -> None:
    cluster = KeptCluster(2, without_data=(1,))
    with pytest.raises(NotKept, match="1 of 2 servers keep data, and more than half have to"):
        cluster.have(0, lambda link: link.join("orders", STACK, keep=10))
    cluster.end()


def test_who_is_no_member_may_send_to_an_open_group_and_have_that_confirmed(
    cluster: KeptCluster,
) -> None:
    async def create(link: Link) -> None:
        await Group(link, "orders").create(STACK, open=True, keep=10)

    async def send(link: Link) -> None:
        orders = await link.attach("orders")
        await orders.send(b"from outside")
        await orders.confirm()

    cluster.have(0, create)
    cluster.have(1, send)
    assert cluster.have(2, lambda link: all_kept(link, "orders", 1)) == [(1, b"from outside")]


def test_a_kept_group_has_a_domain_for_itself(cluster: KeptCluster) -> None:
    async def create(link: Link, keep: int, domain: str) -> None:
        await Group(link, "orders").create(STACK, keep=keep, domain=domain)

    with pytest.raises(NotAllowed, match="has a domain for itself"):
        cluster.have(0, lambda link: create(link, 10, "mine"))
    with pytest.raises(NotAllowed, match="no other domain begins with 'kept:'"):
        cluster.have(0, lambda link: create(link, 0, "kept:1"))


def test_a_group_that_keeps_nothing_has_nothing_to_give(cluster: KeptCluster) -> None:
    async def join(link: Link) -> None:
        await Group(link, "orders").create(STACK)
        await link.join("orders", since=0)

    with pytest.raises(NotKept, match="'orders' keeps no messages"):
        cluster.have(0, join)


@pytest.mark.parametrize("wrong", [-1, True, 1 << 70])
def test_numbers_that_are_none_are_refused(cluster: KeptCluster, wrong: int) -> None:
    with pytest.raises(UsageError, match="keep is a whole number from 0 to"):
        cluster.have(0, lambda link: Group(link, "orders").create(STACK, keep=wrong))
    with pytest.raises(UsageError, match="since is a whole number from 0 to"):
        cluster.have(0, lambda link: link.join("orders", since=wrong))


def test_a_group_tells_that_it_is_kept(cluster: KeptCluster) -> None:
    async def info(link: Link) -> tuple[int, str, tuple[str, ...]]:
        found = await (await link.join("orders", STACK, keep=7)).info()
        return found.keep, found.level, found.servers

    assert cluster.have(0, info) == (7, "kept", ("s0", "s1", "s2"))


def test_what_a_destroyed_group_has_kept_is_gone(cluster: KeptCluster) -> None:
    async def destroy(link: Link) -> None:
        await (await link.join("orders")).destroy()

    cluster.have(0, lambda link: send_confirmed(link, "orders", BODIES))
    cluster.have(0, destroy)
    cluster.have(0, lambda link: send_confirmed(link, "orders", [b"new"]))
    assert cluster.have(1, lambda link: all_kept(link, "orders", 1)) == [(1, b"new")]


@pytest.mark.parametrize("stack", [STACK, "RELIABLE ATOMIC SAFE"])
def test_members_see_what_they_see_in_any_other_group(stack: str) -> None:
    """The same orders, views, and messages between views, whatever happens to servers."""
    load = Load(servers=(2, 3, 4), messages=60, faults=4, kinds=FAULTS, data=True, keep=1000)
    for seed in range(3):
        execution = Execution(draw_schedule(seed, stack, load))
        execution.run()
        assert problems(execution) == []


def test_any_faults_lose_nothing_that_was_confirmed_or_given() -> None:
    confirmed = 0
    for seed in Random(1).sample(range(1000), 5):
        found, count = run(seed)
        assert found == []
        confirmed += count
    assert confirmed > 500


def test_servers_that_lack_the_messages_do_not_go_on_with_a_shorter_log() -> None:
    """Two of three have just come, and are about to fetch what is kept when all are killed."""
    cluster = KeptCluster()
    cluster.kill(2)
    cluster.wait_for_servers(0, 1)
    cluster.kill(1)
    cluster.wait_for_servers(0)
    bodies = [b"%d" % number + b"." * 500_000 for number in range(40)]
    cluster.have(0, lambda link: send_confirmed(link, "orders", bodies))
    cluster.restart(1, 2)
    execution = cluster.execution
    while any(execution.size_of(server) < 3 for server in cluster.servers):
        cluster.pass_time(0.001)
    creating = cluster.begin(0, lambda link: Group(link, "another").create("FIFO"))
    while not creating.is_done():
        cluster.pass_time(0.001)
    cluster.kill(0, 1, 2)
    cluster.restart(1, 2)
    cluster.wait_for_servers(1, 2)
    with pytest.raises(
        NotKept, match="the servers that have all messages of 'orders' are not here"
    ):
        cluster.have(1, lambda link: link.join("orders", since=0))
    cluster.restart(0)
    cluster.wait_for_servers(0, 1, 2)
    kept = cluster.have(1, lambda link: all_kept(link, "orders", 40))
    assert kept == list(enumerate(bodies, 1))
    cluster.end()
