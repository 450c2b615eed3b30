"""A change stops what it concerns, and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from flexgroup import Group, connect
from flexgroup.client.errors import MixedStacks
from flexgroup.membership.messages import Accept, Commit
from flexgroup.server.settings import Limits

from ..client.loops import on_a_loop
from .in_process import Held, servers


@pytest.mark.parametrize("stack", ["reliable atomic", "fifo dcc", "causal-rst", "abcast"])
def test_a_join_does_not_stop_other_groups_of_the_stack(stack: str) -> None:
    """While a change waits for a server, messages to groups that it does not concern arrive."""

    @on_a_loop
    async def goes_on() -> None:
        async with (
            servers(2) as (first, second),
            connect(first.address, name="a") as a,
            connect(second.address, name="b") as b,
            connect(first.address, name="c") as c,
        ):
            sender, _ = await a.join("quiet", stack), await a.join("joined", stack)
            receiver, _ = await b.join("quiet"), await b.join("joined")
            decisions = Held(first, Accept)
            joining = asyncio.create_task(c.join("joined"))
            while not second.deployment.is_changing:
                await asyncio.sleep(0)
            await sender.send(b"meanwhile")
            assert (await receiver.receive()).body == b"meanwhile"
            assert second.deployment.is_changing
            decisions.release()
            await joining

    goes_on()


@on_a_loop
async def test_what_is_sent_to_a_group_that_changes_waits_and_arrives_in_the_next_view() -> None:
    async with (
        servers(2) as (first, second),
        connect(first.address, name="a") as a,
        connect(second.address, name="b") as b,
        connect(first.address, name="c") as c,
    ):
        await a.join("g", "reliable atomic")
        sender = await b.join("g")
        commits = Held(first, Commit)
        newcomer = await c.join("g")
        while not second.deployment.is_changing:
            await asyncio.sleep(0)
        await sender.send(b"held")
        commits.release()
        assert (await newcomer.receive()).body == b"held"


@on_a_loop
async def test_a_server_takes_part_in_the_domains_of_its_clients_only() -> None:
    async with (
        servers(2) as (first, second),
        connect(first.address, name="a") as a,
        connect(second.address, name="b") as b,
    ):
        await a.join("of a", "reliable atomic", open=True)
        assert len(first.deployment.domains) == 1
        assert second.deployment.domains == []
        sender = await b.attach("of a")
        assert [hosted.servers for hosted in second.deployment.domains] == [(1, 2)]
        await sender.leave()
        while second.deployment.domains:
            await asyncio.sleep(0.01)
        assert [hosted.servers for hosted in first.deployment.domains] == [(1,)]


@on_a_loop
async def test_what_was_sent_before_leaving_arrives_although_it_had_to_wait() -> None:
    """The last process at a server that sends to the group leaves it, and the server with it."""
    limits = Limits(under_way=2, pack=1)
    async with (
        servers(2, limits) as (first, second),
        connect(first.address, name="a") as a,
        connect(second.address, name="b") as b,
    ):
        member = await a.join("g", "reliable atomic", open=True)
        sender = await b.attach("g")
        for number in range(50):
            await sender.send(b"%d" % number)
        await sender.leave()
        assert [int((await member.receive()).body) for _ in range(50)] == list(range(50))


@on_a_loop
async def test_a_group_with_a_slow_member_does_not_hold_up_another_of_the_stack() -> None:
    limits = Limits(window=1, queue=1, under_way=1, pack=1, slow_seconds=1000)
    async with (
        servers(1, limits) as (first,),
        connect(first.address, name="a") as a,
        connect(first.address, name="b") as b,
        connect(first.address, name="c") as c,
    ):
        slow, quick = await a.join("slow", "skeen", own=False), await c.join("quick", "skeen")
        await b.join("slow")
        for number in range(20):
            await slow.send(b"%d" % number)
        for number in range(20):
            await quick.send(b"%d" % number)
            assert (await quick.receive()).body == b"%d" % number
        (stack,) = (await a.inspect())["stacks"]
        assert stack["multicast"] < 40


@on_a_loop
async def test_a_domain_of_its_own_keeps_a_group_apart_even_for_a_client_of_both() -> None:
    limits = Limits(window=1, queue=1, under_way=1, pack=1, slow_seconds=1000)
    async with (
        servers(1, limits) as (first,),
        connect(first.address, name="a") as a,
        connect(first.address, name="b") as b,
    ):
        apart = await Group(a, "apart").create("skeen", domain="its own")
        await apart.join()
        assert (await apart.info()).domain == "its own"
        slow = await a.join("slow", "skeen", own=False)
        await b.join("slow")
        for number in range(20):
            await slow.send(b"%d" % number)
        await apart.send(b"past them")
        assert (await apart.receive()).body == b"past them"
        assert [hosted.stack for hosted in first.deployment.domains] == ["skeen", "skeen"]
        await a.multicast([apart, slow], b"to both")
        with pytest.raises(MixedStacks, match="have no order in common"):
            await slow.receive()
