"""Sending without waiting: `send_now`, and what there is room for."""

from __future__ import annotations

import asyncio

import pytest

from flexgroup import Group, values
from flexgroup.client.errors import LinkClosed, NotAllowed, NotMember, TooLarge
from flexgroup.core.errors import UsageError
from flexgroup.wire import requests as r

from .chat import STACK, Diary, deliveries, in_chat, sent_to
from .loops import on_a_loop
from .stand_in import settled


@on_a_loop
async def test_each_body_is_a_message_that_leaves_at_once() -> None:
    async with in_chat() as (server, _, group):
        assert group.send_now(b"%d" % number for number in range(50))
        await settled(group)
        assert sent_to(server) == [b"%d" % number for number in range(50)]
        orders = await group.link.join("orders", STACK, codec=values)
        assert orders.send_now([{"tea": 1}])
        assert (await orders.receive()).body == {"tea": 1}


@on_a_loop
async def test_all_or_none_of_them_are_sent() -> None:
    async with in_chat(sends=10) as (server, _, group):
        server.is_granting = False
        assert not group.send_now([b"no"] * 11)
        assert group.send_now([b"yes"] * 6)
        assert not group.send_now([b"no"] * 5)
        assert group.send_now([b"yes"] * 4)
        assert not group.send_now([b"no"])
        assert group.send_now([])
        await settled(group)
        assert sent_to(server) == [b"yes"] * 10


@on_a_loop
async def test_what_send_raises_send_now_raises() -> None:
    async with in_chat() as (server, link, group):
        with pytest.raises(TooLarge):
            group.send_now([b"fits", bytes((1 << 20) + 1)])
        with pytest.raises(UsageError, match="bytes, not int"):
            group.send_now(b"not a list of bodies")
        with pytest.raises(NotMember, match=r"await group.join\(\) first"):
            Group(link, "other").send_now([])
        server.client.say(r.Refused(None, "not-allowed", "not this", 1))
        await settled(group)
        with pytest.raises(NotAllowed, match="not this"):
            group.send_now([b""])
        await link.close()
        with pytest.raises(LinkClosed):
            group.send_now([])
        assert sent_to(server) == []


@on_a_loop
async def test_there_is_no_room_while_the_connection_is_full() -> None:
    async with in_chat(sends=1_000_000) as (server, _, group):
        server.client.transport.pause_reading()
        bodies = [bytes(100_000)] * 10
        sent = 0
        while group.send_now(bodies):
            sent += len(bodies)
        server.client.transport.resume_reading()
        await group.room(len(bodies))
        assert group.send_now(bodies)
        await server.client.until_told(r.Send, sent + len(bodies))


@on_a_loop
async def test_a_burst_does_not_keep_a_listener_from_sending() -> None:
    async with in_chat(sends=1_000_000) as (server, _, group):
        group.listen(Diary(lambda bodies: group.send_now([bytes(200_000)])))
        server.client.say(deliveries(b"1"))
        await server.client.until_told(r.Send, 20)


@on_a_loop
async def test_room_comes_when_the_server_grants_it() -> None:
    async with in_chat(sends=10) as (server, _, group):
        server.is_granting = False
        assert group.send_now([b""] * 8)
        await group.room(2)
        waiting = asyncio.create_task(group.room(5))
        await settled(group)
        assert not waiting.done()
        server.grant(server.client)
        await waiting
        assert group.send_now([b""] * 5)


@on_a_loop
async def test_who_waits_for_room_gets_it_before_those_that_do_not() -> None:
    async with in_chat(sends=10) as (server, _, group):
        server.is_granting = False
        group.listen(diary := Diary(lambda bodies: tried.append(group.send_now([b"late"]))))
        tried: list[bool] = []
        waiting = asyncio.create_task(group.send_all([b""] * 11 + [b"first"]))
        await settled(group)
        tried.clear()
        server.client.say(r.Granted(10), deliveries(b"1"))
        server.client.ungranted = 0
        await waiting
        assert tried == [False]
        assert diary.told[-1] == [b"1"]
        assert group.send_now([b"late"])


@on_a_loop
async def test_who_waits_for_much_room_does_not_hold_up_those_that_need_little() -> None:
    async with in_chat(sends=10) as (server, _, group):
        server.is_granting = False
        assert group.send_now([b""] * 8)
        waiting = asyncio.create_task(group.room(5))
        await settled(group)
        await group.room(1)
        assert group.send_now([b""])
        server.grant(server.client)
        await waiting


@on_a_loop
async def test_several_that_wait_for_room_all_get_it() -> None:
    async with in_chat(sends=10) as (server, _, group):

        async def send(count: int) -> None:
            while not group.send_now([b""] * count):
                await group.room(count)

        async with asyncio.TaskGroup() as tasks:
            for count in [5, 3, 5, 1] * 10:
                tasks.create_task(send(count))
        await server.client.until_told(r.Send, 140)


@on_a_loop
async def test_waiting_for_less_room_than_is_needed_lets_others_run() -> None:
    async with in_chat(sends=10) as (_, _, group):
        assert group.send_now([b""] * 8)
        while not group.send_now([b""] * 5):
            await group.room()


@on_a_loop
async def test_room_that_may_never_come_is_not_waited_for() -> None:
    async with in_chat(sends=10) as (_, _, group):
        await group.room(5)
        with pytest.raises(UsageError, match="in parts, or with send_all"):
            await group.room(6)


@on_a_loop
async def test_who_waits_for_room_learns_of_the_end() -> None:
    async with in_chat(sends=2) as (server, link, group):
        server.is_granting = False
        assert group.send_now([b"", b""])
        waiting = asyncio.create_task(group.room())
        await settled(group)
        await link.close()
        with pytest.raises(LinkClosed):
            await waiting
        with pytest.raises(LinkClosed):
            await group.room()
