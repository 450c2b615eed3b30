"""What a server has taken from its clients, although they or the server itself go.

Sections 3.5.4 and 3.5.9 of the text: a message may be lost with the server that has it, and not
otherwise.
"""

from __future__ import annotations

import asyncio

import pytest

from flexgroup import Group, connect
from flexgroup.client.errors import ServerClosing
from flexgroup.membership.messages import Commit
from flexgroup.server.settings import Limits

from ..client.loops import on_a_loop
from .in_process import Held, servers


@on_a_loop
async def test_what_a_process_sent_before_it_closed_is_delivered() -> None:
    """Section 3.5.9: the server has it, so only a failure of the server may lose it."""
    async with servers(2) as (first, second), connect(first.address, name="a") as a:
        member = await a.join("g", "reliable atomic", open=True)
        link = await connect(second.address, name="b")
        group = await link.attach("g")
        commits = Held(first, Commit)
        await Group(a, "another").create("fifo")
        for number in range(5):
            await group.send(b"%d" % number)
        await link.close()
        commits.release()
        assert [(await member.receive()).body for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]


@on_a_loop
async def test_a_server_that_is_stopped_sees_to_what_its_clients_have_sent() -> None:
    """Section 3.5.4: subprotocols finish before the server leaves."""
    few = Limits(under_way=20, pack=1)
    async with servers(2, few) as (first, second), connect(first.address, name="a") as a:
        member = await a.join("g", "reliable atomic", open=True)
        link = await connect(second.address, name="b")
        group = await link.attach("g")
        count = 300
        for number in range(count):
            await group.send(b"%d" % number)
        await link.inspect()
        second.stop()
        received = [int((await member.receive()).body) for _ in range(count)]
        assert received == list(range(count))
        with pytest.raises(ServerClosing, match="shutting down"):
            await link.inspect()
        while len((await a.inspect())["servers"]) > 1:
            await asyncio.sleep(0.01)


@on_a_loop
async def test_a_stack_with_too_much_under_way_does_not_hold_up_the_others() -> None:
    limits = Limits(window=1, queue=1, under_way=1, pack=1, slow_seconds=1000)
    async with (
        servers(1, limits) as (first,),
        connect(first.address, name="a") as a,
        connect(first.address, name="b") as b,
    ):
        slow, quick = await a.join("slow", "fifo", own=False), await a.join("quick", "skeen")
        await b.join("slow")
        for number in range(20):
            await slow.send(b"%d" % number)
        await quick.send(b"past them")
        assert (await quick.receive()).body == b"past them"
        (stack,) = [s for s in (await a.inspect())["stacks"] if s["stack"] == "fifo"]
        assert stack["multicast"] < 20


@on_a_loop
async def test_what_a_member_sent_before_it_left_is_delivered() -> None:
    async with (
        servers(2) as (first, second),
        connect(first.address, name="a") as a,
        connect(second.address, name="b") as b,
    ):
        member, leaver = await a.join("g", "reliable atomic"), await b.join("g")
        commits = Held(first, Commit)
        await Group(a, "another").create("fifo")
        await leaver.send(b"farewell")
        leaving = asyncio.create_task(leaver.leave())
        commits.release()
        await leaving
        assert (await member.receive()).body == b"farewell"


@on_a_loop
async def test_what_a_server_says_when_it_finds_that_it_was_stopped_is_sent() -> None:
    """It may flush everybody before it goes on with what it was about to say."""
    async with servers(1) as (server,), connect(server.address, name="a") as link:
        round = server._round
        round.awoke = round.flush
        round._latest = 0
        async with asyncio.timeout(10):
            assert len((await link.inspect())["servers"]) == 1
            assert len((await link.inspect())["servers"]) == 1
