"""Nobody is flooded: neither the application, nor the server, nor the connection between them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import msgpack

from flexgroup import connect
from flexgroup.client.outgoing import send_prefix
from flexgroup.wire import requests as r

from .chat import sent_to
from .loops import on_a_loop, run_on_uvloop
from .stand_in import settled, stand_in


def sends(told: list[r.AnyFromClient]) -> int:
    return sum(isinstance(said, r.Send) for said in told)


@on_a_loop
async def test_an_application_that_does_not_receive_stops_the_server_from_sending() -> None:
    async with stand_in(window=8) as server, connect(server.address) as link:
        group = await link.join("chat", "FIFO")
        for _ in range(100):
            await group.send(b"")
        await settled(group)
        assert len(group.inbox().items) == 8
        [seat] = server.groups["chat"].seats
        assert len(seat.waiting) == 92


@on_a_loop
async def test_credit_goes_back_in_quarters_of_the_window() -> None:
    async with stand_in(window=8) as server, connect(server.address) as link:
        group = await link.join("chat", "FIFO")
        for number in range(100):
            await group.send(b"%d" % number)
        received = [(await group.receive()).body for _ in range(100)]
        assert received == [b"%d" % number for number in range(100)]
        await settled(group)
        credits = [said.messages for said in server.client.told if isinstance(said, r.Credit)]
        assert set(credits) == {2}
        assert sum(credits) == 100


@on_a_loop
async def test_a_window_of_one_is_enough() -> None:
    async with stand_in(window=1) as server, connect(server.address) as link:
        group = await link.join("chat", "FIFO")
        for number in range(10):
            await group.send(b"%d" % number)
        assert [(await group.receive()).body for _ in range(10)] == [b"%d" % n for n in range(10)]


@on_a_loop
async def test_one_slow_group_does_not_hold_up_another() -> None:
    async with stand_in(window=4) as server, connect(server.address) as link:
        slow, quick = await link.join("slow", "FIFO"), await link.join("quick", "FIFO")
        for number in range(50):
            await slow.send(b"")
            await quick.send(b"%d" % number)
        assert [(await quick.receive()).body for _ in range(50)] == [b"%d" % n for n in range(50)]
        assert len(slow.inbox().items) == 4


@on_a_loop
async def test_what_is_sent_in_one_iteration_after_the_first_message_is_one_frame() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", "FIFO")
        before = server.client.frames
        for _ in range(500):
            await group.send(b"0123456789")
        await server.client.until_told(r.Send, 500)
        assert server.client.frames == before + 2


@on_a_loop
async def test_an_answer_leaves_at_once_and_what_follows_it_is_one_frame() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", "FIFO", own=False)
        for _ in range(3):
            server.deliver(server.groups["chat"], "b", b"question")
            await group.receive()
            before = server.client.frames, sends(server.client.told)
            for _ in range(10):
                await group.send(b"answer")
            await server.client.until_told(r.Send, before[1] + 10)
            assert server.client.frames == before[0] + 2


@on_a_loop
async def test_who_never_receives_sends_in_every_iteration() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", "FIFO", own=False)
        for number in range(1, 20):
            await group.send(b"")
            await server.client.until_told(r.Send, number)


@on_a_loop
async def test_order_is_kept_whether_messages_leave_at_once_or_later() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", "FIFO")
        for number in range(0, 300, 3):
            await group.send(b"%d" % number)
            await group.send_all([b"%d" % (number + 1), b"%d" % (number + 2)])
            if number % 2:
                await asyncio.sleep(0)
            if number % 5 == 0:
                await group.receive()
        await settled(group)
        assert sent_to(server) == [b"%d" % number for number in range(300)]


@pytest.mark.parametrize("handle", [0, 127, 128, 70_000, (1 << 32) - 1])
@pytest.mark.parametrize("size", [0, 1, 255, 256, 70_000])
def test_the_prefix_of_a_send_goes_with_every_body(handle: int, size: int) -> None:
    encode = msgpack.encode
    body = bytes(size)
    for bodies in ([body], [body] * 20):
        assert send_prefix(handle) + encode(bodies) == encode(r.Send([handle], bodies))


@on_a_loop
async def test_a_sender_waits_until_the_server_takes_more_messages() -> None:
    async with stand_in(sends=10) as server, connect(server.address) as link:
        server.is_granting = False
        group = await link.join("chat", "FIFO")
        for _ in range(10):
            await group.send(b"")
        waiting = [asyncio.create_task(group.send(b"%d" % number)) for number in range(15)]
        await settled(group)
        assert sends(server.client.told) == 10
        server.grant(server.client)
        await server.client.until_told(r.Send, 20)
        await settled(group)
        assert sum(task.done() for task in waiting) == 10
        server.grant(server.client)
        await asyncio.gather(*waiting)
        await settled(group)
        bodies = [said.bodies[0] for said in server.client.told if isinstance(said, r.Send)]
        assert bodies[10:] == [b"%d" % number for number in range(15)]


@on_a_loop
async def test_a_sender_waits_while_the_connection_is_full() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", "FIFO", own=False)
        server.client.transport.pause_reading()
        sent = 0
        while not link.connection.outgoing.busy or sent < 100:
            sending = asyncio.create_task(group.send(bytes(1 << 19)))
            for _ in range(10):
                await asyncio.sleep(0)
            if not sending.done():
                break
            sent += 1
        assert not sending.done()
        assert sent < 100
        server.client.transport.resume_reading()
        await sending
        await server.client.until_told(r.Send, sent + 1)


@on_a_loop
async def test_a_cancelled_sender_that_waited_has_sent_nothing() -> None:
    async with stand_in(sends=1) as server, connect(server.address) as link:
        server.is_granting = False
        group = await link.join("chat", "FIFO")
        await group.send(b"first")
        given_up = asyncio.create_task(group.send(b"given up"))
        await settled(group)
        given_up.cancel()
        await asyncio.wait([given_up])
        server.grant(server.client)
        await group.send(b"second")
        await settled(group)
        assert sent_to(server) == [b"first", b"second"]


@on_a_loop
async def test_a_busy_sender_lets_others_run() -> None:
    async with stand_in(sends=1_000_000) as server, connect(server.address) as link:
        group = await link.join("chat", "FIFO", own=False)
        ran = asyncio.Event()
        asyncio.get_running_loop().call_soon(ran.set)
        count = 0
        while not ran.is_set():
            await group.send(bytes(1000))
            count += 1
        assert count < 100
        await server.client.until_told(r.Send, count)


@on_a_loop
async def test_a_waiting_sender_learns_of_the_end_of_the_connection() -> None:
    async with stand_in(sends=1) as server, connect(server.address) as link:
        server.is_granting = False
        group = await link.join("chat", "FIFO")
        await group.send(b"")
        waiting = asyncio.create_task(group.send(b""))
        await settled(group)
        server.client.transport.abort()
        [outcome] = await asyncio.gather(waiting, return_exceptions=True)
        assert isinstance(outcome, ConnectionError)


@pytest.mark.parametrize(
    "test",
    [
        test_an_application_that_does_not_receive_stops_the_server_from_sending,
        test_credit_goes_back_in_quarters_of_the_window,
        test_what_is_sent_in_one_iteration_after_the_first_message_is_one_frame,
        test_an_answer_leaves_at_once_and_what_follows_it_is_one_frame,
        test_who_never_receives_sends_in_every_iteration,
        test_order_is_kept_whether_messages_leave_at_once_or_later,
        test_a_sender_waits_until_the_server_takes_more_messages,
        test_a_sender_waits_while_the_connection_is_full,
        test_a_busy_sender_lets_others_run,
        test_a_waiting_sender_learns_of_the_end_of_the_connection,
    ],
)
def test_the_same_on_uvloop(test: Any) -> None:
    run_on_uvloop(test)
