"""Many messages at a time: `send_all` and `receive_all`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flexgroup import Group, Message, View, connect, values
from flexgroup.client.errors import (
    GroupDestroyed,
    LinkClosed,
    NoMessage,
    NotMember,
    TooLarge,
)
from flexgroup.core.errors import PeerError, UsageError
from flexgroup.wire import requests as r

from .chat import sent_to
from .loops import on_a_loop, run_on_uvloop
from .stand_in import StandIn, settled, stand_in

STACK = "RELIABLE CAUSAL"


def numbers(first: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, end)]


def deliver_together(server: StandIn, bodies: list[bytes]) -> None:
    """To the last client, which is in the first group."""
    server.client.say(r.Delivered([1], 1, 0, [r.Sent("z", [body]) for body in bodies]))


def bodies_of(messages: list[Message[Any]]) -> list[Any]:
    return [message.body for message in messages]


# Sending.


@on_a_loop
async def test_each_body_is_a_message_in_the_order_given() -> None:
    async with stand_in() as server, connect(server.address, name="a") as link:
        group = await link.join("chat", STACK)
        await group.send_all(b"%d" % number for number in range(50))
        for number in range(50):
            assert await group.receive() == Message("a", b"%d" % number, "chat")


@on_a_loop
async def test_what_is_sent_together_leaves_in_one_frame() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        before = server.client.frames
        await group.send_all(numbers(0, 500))
        await server.client.until_told(r.Send, 500)
        assert server.client.frames == before + 1


@on_a_loop
async def test_if_one_body_cannot_be_sent_none_is() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        with pytest.raises(TooLarge):
            await group.send_all([b"fits", bytes((1 << 20) + 1)])
        with pytest.raises(UsageError, match="bytes, not int"):
            await group.send_all(b"not a list of bodies")  # type: ignore[arg-type]
        orders = await link.join("orders", STACK, codec=values)
        with pytest.raises(UsageError, match="cannot hold"):
            await orders.send_all([1, object()])
        await settled(group)
        assert sent_to(server) == []


@on_a_loop
async def test_sending_nothing_says_nothing() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        await settled(group)
        before = server.client.frames
        await group.send_all([])
        await settled(group)
        assert server.client.frames == before + 1


@on_a_loop
async def test_who_is_outside_can_send_nothing_not_even_no_messages() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = Group(link, "chat")
        with pytest.raises(NotMember, match=r"await group.join\(\) first"):
            await group.send_all([b""])
        group = await link.join("chat", STACK)
        await group.leave()
        for bodies in ([], [b""]):
            with pytest.raises(NotMember, match="has left"):
                await group.send_all(bodies)


@on_a_loop
async def test_a_hundred_thousand_bodies_wait_for_the_server_and_let_others_run() -> None:
    async with stand_in(sends=1000) as server, connect(server.address) as link:
        group = await link.join("chat", STACK, own=False)
        sending = asyncio.create_task(group.send_all(numbers(0, 100_000)))
        turns = 0
        while not sending.done():
            await asyncio.sleep(0)
            turns += 1
        await server.client.until_told(r.Send, 100_000)
        assert sent_to(server) == numbers(0, 100_000)
        assert turns >= 100


@on_a_loop
async def test_a_sender_with_much_to_send_lets_others_run_when_the_server_takes_all() -> None:
    async with stand_in(sends=1_000_000) as server, connect(server.address) as link:
        group = await link.join("chat", STACK, own=False)
        sending = asyncio.create_task(group.send_all([bytes(1000)] * 1000))
        await asyncio.sleep(0)
        assert not sending.done()
        await sending
        await server.client.until_told(r.Send, 1000)


@on_a_loop
async def test_a_cancelled_sender_has_sent_the_first_ones() -> None:
    async with stand_in(sends=10) as server, connect(server.address) as link:
        server.is_granting = False
        group = await link.join("chat", STACK)
        given_up = asyncio.create_task(group.send_all(numbers(0, 100)))
        await settled(group)
        given_up.cancel()
        await asyncio.wait([given_up])
        server.grant(server.client)
        await group.send(b"next")
        await settled(group)
        assert sent_to(server) == [*numbers(0, 10), b"next"]


@on_a_loop
async def test_a_sender_that_waits_learns_of_the_end_of_its_membership() -> None:
    async with stand_in(sends=1) as server, connect(server.address) as link:
        server.is_granting = False
        left, destroyed = await link.join("left", STACK), await link.join("destroyed", STACK)
        sending = [asyncio.create_task(group.send_all([b""] * 2)) for group in (left, destroyed)]
        await settled(left)
        await left.leave()
        await left.join()
        server.destroy("destroyed")
        await settled(left)
        server.grant(server.client)
        errors = await asyncio.gather(*sending, return_exceptions=True)
        assert [type(error) for error in errors] == [NotMember, GroupDestroyed]
        assert sent_to(server) == [b""]


# Receiving.


@on_a_loop
async def test_all_that_is_here_is_received_at_once() -> None:
    async with stand_in() as server, connect(server.address, name="a") as link:
        group = await link.join("chat", STACK)
        await group.send_all(numbers(0, 3))
        await settled(group)
        assert await group.receive_all() == [
            Message("a", b"0", "chat"),
            Message("a", b"1", "chat"),
            Message("a", b"2", "chat"),
        ]
        waiting = asyncio.create_task(group.receive_all())
        await settled(group)
        assert not waiting.done()
        await group.send(b"3")
        assert bodies_of(await waiting) == [b"3"]


@on_a_loop
async def test_own_messages_are_left_out_if_so_wished() -> None:
    async with stand_in() as server, connect(server.address, name="a") as link:
        group = await link.join("chat", STACK, own=False)
        await group.send_all(numbers(0, 3))
        server.deliver(server.groups["chat"], "b", b"for me")
        assert bodies_of(await group.receive_all()) == [b"for me"]


@on_a_loop
async def test_who_is_no_member_receives_nothing() -> None:
    async with stand_in() as server, connect(server.address) as link:
        with pytest.raises(NotMember, match=r"await group.join\(\) first"):
            await Group(link, "chat").receive_all()


@on_a_loop
async def test_credit_goes_back_for_all_that_was_received() -> None:
    async with stand_in(window=8) as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        await group.send_all(numbers(0, 100))
        received: list[bytes] = []
        while len(received) < 100:
            received += bodies_of(await group.receive_all())
        assert received == numbers(0, 100)
        await settled(group)
        credits = [said.messages for said in server.client.told if isinstance(said, r.Credit)]
        assert sum(credits) == 100


@on_a_loop
async def test_a_time_limit_takes_no_message_with_it() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        with pytest.raises(NoMessage, match="within 0 s"):
            await group.receive_all(timeout=0)
        await group.send_all(numbers(0, 2))
        await settled(group)
        assert bodies_of(await group.receive_all(timeout=60)) == numbers(0, 2)
        with pytest.raises(NoMessage):
            await group.receive_all(timeout=0)


@on_a_loop
async def test_a_cancelled_receiver_takes_no_message_with_it() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        cancelled, waiting = [asyncio.create_task(group.receive_all()) for _ in range(2)]
        await asyncio.sleep(0)
        await group.send_all(numbers(0, 1))
        await server.client.until_told(r.Send)
        # In the iteration in which the first one is woken, and before it runs.
        asyncio.get_running_loop().call_soon(cancelled.cancel)
        assert bodies_of(await waiting) == numbers(0, 1)


@on_a_loop
async def test_receivers_that_are_cancelled_again_and_again_lose_and_double_nothing() -> None:
    async with stand_in(window=8) as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        sending = asyncio.create_task(group.send_all(numbers(0, 2000)))
        received: list[bytes] = []
        turn = 0
        while len(received) < 2000:
            receiving = asyncio.create_task(group.receive_all())
            for _ in range(turn % 7):
                await asyncio.sleep(0)
            receiving.cancel()
            turn += 1
            try:
                received += bodies_of(await receiving)
            except asyncio.CancelledError:
                continue
        await sending
        assert received == numbers(0, 2000)


@on_a_loop
async def test_views_are_passed_over_and_the_groups_view_follows() -> None:
    async with stand_in() as server, connect(server.address, name="a") as link:
        group = await link.join("chat", STACK)
        server.client.say(
            r.Delivered([1], 1, 0, [r.Sent("a", [b"alone"])]),
            r.ViewChange(1, 0, 2, ["a", "b"]),
            r.Delivered([1], 1, 0, [r.Sent("b", [b"together"])]),
            r.ViewChange(1, 0, 3, ["a"]),
        )
        await settled(group)
        assert group.view.number == 1
        assert bodies_of(await group.receive_all()) == [b"alone", b"together"]
        assert group.view == View(3, ("a",), "chat")


@on_a_loop
async def test_views_after_the_last_message_stay_for_events() -> None:
    async with stand_in() as server, connect(server.address, name="a") as link:
        group = await link.join("chat", STACK)
        events = group.events()
        assert await anext(events) == View(1, ("a",), "chat")
        server.client.say(
            r.ViewChange(1, 0, 2, ["a", "b"]),
            r.Delivered([1], 1, 0, [r.Sent("b", [b"together"])]),
            r.ViewChange(1, 0, 3, ["a"]),
            r.ViewChange(1, 0, 4, ["a", "c"]),
        )
        await settled(group)
        assert bodies_of(await group.receive_all()) == [b"together"]
        assert group.view.number == 2
        assert await anext(events) == View(3, ("a",), "chat")
        assert await anext(events) == View(4, ("a", "c"), "chat")


@on_a_loop
async def test_a_view_alone_is_nothing_to_receive() -> None:
    async with stand_in() as server, connect(server.address, name="a") as link:
        group = await link.join("chat", STACK, codec=values)
        group.events()
        waiting = asyncio.create_task(group.receive_all())
        server.client.say(r.ViewChange(1, 0, 2, ["a", "b"]))
        await settled(group)
        assert not waiting.done()
        assert group.view.number == 2
        await group.send("now")
        assert bodies_of(await waiting) == ["now"]


@on_a_loop
async def test_each_message_goes_to_one_of_those_that_receive() -> None:
    async with stand_in(window=16) as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        received: list[bytes] = []

        async def receive(many: bool) -> None:
            while True:
                received.extend(
                    bodies_of(await group.receive_all() if many else [await group.receive()])
                )

        tasks = [asyncio.create_task(receive(number % 2 == 0)) for number in range(5)]
        await group.send_all(numbers(0, 1000))
        while len(received) < 1000:
            await settled(group)
        assert sorted(received) == sorted(numbers(0, 1000))
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@on_a_loop
async def test_nobody_sleeps_while_there_is_something_to_receive() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        waiting = [asyncio.create_task(group.receive()) for _ in range(3)]
        await asyncio.sleep(0)
        deliver_together(server, numbers(0, 3))
        assert [message.body for message in await asyncio.gather(*waiting)] == numbers(0, 3)


@on_a_loop
async def test_a_receiver_that_is_closed_while_it_waits_is_nobodys_turn() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        abandoned = group.receive_all()
        abandoned.send(None)
        waiting = asyncio.create_task(group.receive_all())
        await asyncio.sleep(0)
        abandoned.close()
        deliver_together(server, numbers(0, 1))
        assert bodies_of(await waiting) == numbers(0, 1)


@on_a_loop
async def test_who_is_woken_and_finds_nothing_waits_again() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        quick, slow = [asyncio.create_task(group.receive_all()) for _ in range(2)]
        await asyncio.sleep(0)
        deliver_together(server, numbers(0, 3))
        assert bodies_of(await quick) == numbers(0, 3)
        await settled(group)
        assert not slow.done()
        deliver_together(server, numbers(3, 4))
        assert bodies_of(await slow) == numbers(3, 4)


@on_a_loop
async def test_what_comes_before_and_after_a_message_that_cannot_be_read_is_received() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("orders", STACK, codec=values.of(int))
        deliver_together(server, [values.encode(1), values.encode(2), b"\xc1", values.encode(3)])
        await settled(group)
        assert bodies_of(await group.receive_all()) == [1, 2]
        with pytest.raises(PeerError, match="from 'z' in the group 'orders'"):
            await group.receive_all()
        assert bodies_of(await group.receive_all()) == [3]


@on_a_loop
async def test_a_codec_may_raise_what_it_likes() -> None:
    class Numbers:
        def encode(self, value: int) -> bytes:
            return b"%d" % value

        def decode(self, data: bytes) -> int:
            return int(data)

    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("numbers", STACK, codec=Numbers())
        deliver_together(server, [b"1", b"one", b"2"])
        await settled(group)
        assert bodies_of(await group.receive_all()) == [1]
        with pytest.raises(ValueError, match="one"):
            await group.receive_all()
        assert bodies_of(await group.receive_all()) == [2]


@on_a_loop
async def test_a_destroyed_group_gives_what_has_come_and_then_the_error() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        await group.send_all(numbers(0, 3))
        await group.destroy()
        assert bodies_of(await group.receive_all()) == numbers(0, 3)
        for _ in range(2):
            with pytest.raises(GroupDestroyed):
                await group.receive_all()
        with pytest.raises(GroupDestroyed):
            await group.send_all([])


@on_a_loop
async def test_a_group_that_ends_after_a_view_gives_the_error() -> None:
    async with stand_in() as server, connect(server.address, name="a") as link:
        group = await link.join("chat", STACK)
        group.events()
        server.client.say(r.ViewChange(1, 0, 2, ["a", "b"]), r.Destroyed(1, "it was destroyed"))
        await settled(group)
        with pytest.raises(GroupDestroyed):
            await group.receive_all()
        assert group.view.number == 2


@on_a_loop
async def test_what_the_server_refuses_later_is_reported_once() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        waiting = asyncio.create_task(group.receive_all())
        server.client.say(r.Refused(None, "too-large", "too large after all", 1))
        with pytest.raises(TooLarge, match="after all"):
            await waiting
        server.client.say(r.Refused(None, "too-large", "again", 1))
        await settled(group)
        with pytest.raises(TooLarge, match="again"):
            await group.send_all([b""])
        await group.send_all([b"goes on"])
        assert bodies_of(await group.receive_all()) == [b"goes on"]


@on_a_loop
async def test_a_group_that_was_left_gives_nothing_more() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        await group.send_all(numbers(0, 3))
        await settled(group)
        await group.leave()
        with pytest.raises(NotMember, match="has left"):
            await group.receive_all()


@on_a_loop
async def test_a_closed_link_gives_what_has_come_and_then_the_error() -> None:
    async with stand_in() as server:
        link = await connect(server.address)
        group = await link.join("chat", STACK)
        await group.send_all(numbers(0, 3))
        await settled(group)
        await link.close()
        assert bodies_of(await group.receive_all()) == numbers(0, 3)
        with pytest.raises(LinkClosed):
            await group.receive_all()


@pytest.mark.parametrize(
    "test",
    [
        test_what_is_sent_together_leaves_in_one_frame,
        test_a_hundred_thousand_bodies_wait_for_the_server_and_let_others_run,
        test_a_cancelled_sender_has_sent_the_first_ones,
        test_a_cancelled_receiver_takes_no_message_with_it,
        test_receivers_that_are_cancelled_again_and_again_lose_and_double_nothing,
        test_each_message_goes_to_one_of_those_that_receive,
        test_nobody_sleeps_while_there_is_something_to_receive,
    ],
)
def test_the_same_on_uvloop(test: Any) -> None:
    run_on_uvloop(test)


@on_a_loop
async def test_messages_of_one_sender_in_a_row_have_places_of_their_own() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        sent = [r.Sent("a", [b"1", b"2"]), r.Sent("b", [b"3"]), r.Sent("a", [b"4"])]
        server.client.say(r.Delivered([1], 1, 7, sent))
        received = [await group.receive() for _ in range(4)]
        assert [(m.sender, m.body, m.group, m.position) for m in received] == [
            ("a", b"1", "chat", 7),
            ("a", b"2", "chat", 8),
            ("b", b"3", "chat", 9),
            ("a", b"4", "chat", 10),
        ]


@on_a_loop
async def test_kept_messages_of_one_sender_in_a_row_have_numbers_of_their_own() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        server.client.say(r.DeliveredKept(1, 100, 7, [r.Sent("a", [b"1", b"2"])]))
        received = [await group.receive() for _ in range(2)]
        assert [(m.position, m.number) for m in received] == [(7, 107), (8, 108)]
