"""Reading by link: all groups of a process in the one order in which the server delivered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from flexgroup import Group, Link, Message, View, connect, values
from flexgroup.client.errors import ConnectionLost, NoMessage, NotMember, Refusal, TooLarge
from flexgroup.core.errors import PeerError, UsageError
from flexgroup.wire import requests as r

from .chat import STACK, Deaf, Diary, deliveries, reports
from .loops import on_a_loop
from .stand_in import StandIn, settled, stand_in

Two = tuple[StandIn, Link, Group[Any], Group[Any]]


@asynccontextmanager
async def in_two_groups(window: int = 64, codec: Any = None) -> AsyncIterator[Two]:
    """A member of the groups one and two, whose handles are 1 and 2, and first views have the
    positions 1 and 2."""
    async with stand_in(window) as server, connect(server.address, name="a") as link:
        yield (
            server,
            link,
            await link.join("one", STACK, codec=codec),
            await link.join("two", STACK),
        )


def at(position: int, *bodies: bytes, to: tuple[int, ...], here: int | None = None) -> r.Delivered:
    """Messages in places that the test chooses."""
    messages = [r.Sent("z", [body]) for body in bodies]
    return r.Delivered(list(to), len(to) if here is None else here, position, messages)


async def bodies_by_link(link: Link, count: int) -> list[bytes]:
    return [(await link.receive()).body for _ in range(count)]


async def is_empty(queue: Group[Any] | Link) -> bool:
    try:
        await queue.receive(timeout=0)
    except NoMessage:
        return True
    return False


# The order.


@on_a_loop
async def test_whoever_reads_by_link_gets_all_groups_in_the_order_of_delivery() -> None:
    async with in_two_groups() as (server, link, one, two):
        for number in range(20):
            await (one, two)[number % 3 % 2].send(b"%d" % number)
        assert len(server.groups) == 2
        assert await bodies_by_link(link, 20) == [b"%d" % number for number in range(20)]


@on_a_loop
async def test_messages_and_views_have_their_positions_in_that_order() -> None:
    async with in_two_groups() as (server, _, one, two):
        server.client.say(deliveries(b"x", b"y"), deliveries(b"z", handle=2))
        server.client.say(r.ViewChange(1, 0, 2, ["a", "z"]), deliveries(b"last"))
        assert [(await one.receive()).position for _ in range(2)] == [3, 4]
        assert (await two.receive()).position == 5
        await settled(one)
        assert one.view.position == 6
        assert (await one.receive()).position == 7
        assert two.view.position == 2


@on_a_loop
async def test_positions_do_not_make_messages_or_views_different() -> None:
    assert Message("a", b"", "g", 1) == Message("a", b"", "g", 2)
    assert len({Message("a", b"", "g", 1), Message("a", b"", "g", 2)}) == 1
    assert Message("a", b"", "g") != Message("a", b"", "h")
    assert View(1, ("a",), "g", 1) == View(1, ("a",), "g", 2)
    assert View(1, ("a",), "g") != View(2, ("a",), "g")


@on_a_loop
async def test_what_the_server_holds_back_is_waited_for_by_link_and_not_by_group() -> None:
    async with in_two_groups() as (server, link, _, two):
        server.client.say(r.Held(3), at(4, b"second", b"third", to=(2,)))
        await settled(two)
        assert await is_empty(link)
        assert (await two.receive()).body == b"second"
        server.client.say(at(3, b"first", to=(1,)), r.Held(0))
        assert await bodies_by_link(link, 2) == [b"first", b"third"]


@on_a_loop
async def test_who_waits_by_link_is_woken_by_what_was_held_back() -> None:
    async with in_two_groups() as (server, link, _, two):
        waiting = asyncio.create_task(bodies_by_link(link, 3))
        server.client.say(r.Held(3), at(5, b"third", to=(2,)))
        await settled(two)
        server.client.say(at(3, b"first", to=(1,)), r.Held(4))
        server.client.say(at(4, b"second", to=(1,)), r.Held(0))
        assert await waiting == [b"first", b"second", b"third"]


@on_a_loop
async def test_what_was_held_back_in_a_group_that_is_left_is_not_waited_for() -> None:
    async with in_two_groups() as (server, link, one, two):
        server.client.say(r.Held(3), at(4, b"here", to=(2,)))
        await settled(two)
        await one.leave()
        assert await is_empty(link)
        server.client.say(r.Held(0))
        assert (await link.receive()).body == b"here"


@on_a_loop
async def test_a_reader_by_link_and_readers_of_groups_share_one_queue() -> None:
    async with in_two_groups() as (server, link, one, two):
        server.client.say(deliveries(b"1", b"2"), deliveries(b"3", handle=2), deliveries(b"4"))
        assert (await two.receive()).body == b"3"
        assert await bodies_by_link(link, 2) == [b"1", b"2"]
        assert (await one.receive()).body == b"4"
        assert await is_empty(link)


@on_a_loop
async def test_receiving_all_by_link_takes_what_is_here() -> None:
    async with in_two_groups() as (server, link, one, _):
        server.client.say(deliveries(b"1"), deliveries(b"2", handle=2), deliveries(b"3"))
        await settled(one)
        assert [m.body for m in await link.receive_all()] == [b"1", b"2", b"3"]


@on_a_loop
async def test_several_tasks_that_receive_by_link_share_the_messages_out() -> None:
    async with in_two_groups() as (server, link, one, _):
        tasks = [asyncio.create_task(link.receive()) for _ in range(4)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        server.client.say(deliveries(b"1"), deliveries(b"2", b"3", handle=2))
        await settled(one)
        assert sorted([(await task).body for task in tasks[1:]]) == [b"1", b"2", b"3"]


@on_a_loop
async def test_slow_reading_by_link_gives_credit_for_each_group() -> None:
    async with in_two_groups(window=4) as (server, link, one, two):
        await one.send_all([b"1"] * 10)
        await two.send_all([b"2"] * 10)
        await settled(one)
        assert sorted(await bodies_by_link(link, 20)) == [b"1"] * 10 + [b"2"] * 10
        given = [said for said in server.client.told if isinstance(said, r.Credit)]
        assert {credit.handle for credit in given} == {1, 2}


# Views, codecs and ends.


@on_a_loop
async def test_events_of_a_link_begin_with_all_views_and_have_those_of_groups_that_follow() -> None:
    async with in_two_groups() as (server, link, _, _):
        events = link.events()
        assert await anext(events) == View(1, ("a",), "one")
        assert await anext(events) == View(1, ("a",), "two")
        server.client.say(deliveries(b"1"), r.ViewChange(2, 0, 2, ["a", "z"]), deliveries(b"2"))
        assert await anext(events) == Message("z", b"1", "one")
        assert await anext(events) == View(2, ("a", "z"), "two")
        assert await anext(events) == Message("z", b"2", "one")
        three = await link.join("three", STACK)
        assert await anext(events) == View(1, ("a",), "three")
        assert three.members == ("a",)


@on_a_loop
async def test_the_first_view_is_not_given_again_by_the_group() -> None:
    async with in_two_groups() as (server, link, _, _):
        link.events()
        three = await link.join("three", STACK)
        events = three.events()
        server.client.say(deliveries(b"1", handle=3))
        assert await anext(events) == View(1, ("a",), "three")
        assert await anext(events) == Message("z", b"1", "three")


@on_a_loop
async def test_a_view_is_passed_in_its_place_by_who_reads_by_link() -> None:
    async with in_two_groups() as (server, link, one, _):
        server.client.say(deliveries(b"1"), r.ViewChange(1, 0, 2, ["a", "z"]), deliveries(b"2"))
        assert (await link.receive()).body == b"1"
        link.events()  # so that views are not passed over before
        assert one.members in {("a",), ("a", "z")}
        assert (await link.receive()).body == b"2"
        assert one.members == ("a", "z")


@on_a_loop
async def test_each_group_has_its_codec() -> None:
    async with in_two_groups(codec=values) as (server, link, one, _):
        server.client.say(deliveries(values.encode({"n": 1}), b"\xc1"), deliveries(b"2", handle=2))
        await settled(one)
        first = await link.receive_all()
        assert [(m.body, m.position) for m in first] == [({"n": 1}, 3)]
        with pytest.raises(PeerError, match="from 'z' in the group 'one'"):
            await link.receive_all()
        assert (await link.receive()).body == b"2"


@on_a_loop
async def test_a_refusal_is_raised_once_by_link_or_by_group() -> None:
    async with in_two_groups() as (server, link, one, two):
        server.client.say(r.Refused(None, "too-large", "of one", 1))
        with pytest.raises(Refusal, match="of one"):
            await link.receive()
        server.client.say(r.Refused(None, "too-large", "of two", 2))
        await settled(one)
        with pytest.raises(Refusal, match="of two"):
            await two.send(b"")
        assert await is_empty(link)


@on_a_loop
async def test_iteration_over_a_link_ends_with_the_link_and_not_with_a_group() -> None:
    async with in_two_groups() as (server, link, _, two):
        server.client.say(deliveries(b"1"))
        server.destroy("one")
        server.client.say(deliveries(b"2", handle=2))
        await settled(two)
        received: list[bytes] = []
        async for message in link:
            received.append(message.body)
            if message.body == b"2":
                await link.close()
        assert received == [b"1", b"2"]


@on_a_loop
async def test_after_a_lost_connection_the_link_gives_what_came_without_a_gap() -> None:
    async with in_two_groups() as (server, link, one, two):
        server.client.say(at(3, b"here", to=(1,)), r.Held(4), at(5, b"after a gap", to=(2,)))
        await settled(one)
        server.client.transport.abort()
        await link.connection.closed
        assert (await link.receive()).body == b"here"
        with pytest.raises(ConnectionLost):
            await link.receive()
        assert (await two.receive()).body == b"after a gap"


# Messages to several groups.


@on_a_loop
async def test_a_message_to_several_groups_is_given_once_and_names_them() -> None:
    async with in_two_groups() as (server, link, one, two):
        server.client.say(at(3, b"both", b"too", to=(1, 2)), at(5, b"last", to=(2,)))
        message = await one.receive()
        assert (message.body, message.group, message.groups) == (b"both", "one", ("one", "two"))
        message = await two.receive()
        assert (message.body, message.group, message.groups) == (b"too", "two", ("one", "two"))
        message = await link.receive()
        assert (message.body, message.position, message.groups) == (b"last", 5, ("two",))
        assert await is_empty(one)
        assert await is_empty(two)


@on_a_loop
async def test_who_leaves_one_of_its_groups_receives_it_in_the_other() -> None:
    async with in_two_groups() as (server, link, one, two):
        server.client.say(at(3, b"both", to=(1, 2)), at(4, b"later", to=(2,)))
        await settled(one)
        await one.leave()
        message = await two.receive()
        assert (message.body, message.group, message.groups) == (b"both", "two", ("one", "two"))
        assert (await two.receive()).body == b"later"
        assert await is_empty(link)


@on_a_loop
async def test_who_has_received_it_before_leaving_does_not_receive_it_again() -> None:
    async with in_two_groups() as (server, _, one, two):
        server.client.say(at(3, b"two only", to=(2,)), at(4, b"both", to=(1, 2)))
        assert (await one.receive()).body == b"both"
        await one.leave()
        assert (await two.receive()).body == b"two only"
        assert await is_empty(two)


@on_a_loop
async def test_a_copy_that_comes_later_is_given_if_the_first_one_was_not() -> None:
    async with in_two_groups() as (server, _, one, two):
        server.client.say(r.Held(3), at(4, b"given", b"not given", to=(2, 1), here=1))
        assert (await two.receive()).body == b"given"
        await two.leave()
        server.client.say(at(3, b"held", to=(1,)))
        server.client.say(at(4, b"given", b"not given", to=(1, 2), here=1), r.Held(0))
        assert [(await one.receive()).body for _ in range(2)] == [b"held", b"not given"]
        assert await is_empty(one)


@on_a_loop
async def test_a_membership_that_began_later_does_not_hide_a_copy() -> None:
    async with in_two_groups() as (server, link, one, two):
        server.client.say(r.Held(3), at(4, b"both", to=(2, 1), here=1))
        await settled(one)
        await two.leave()
        server.client.position = 4
        again = await link.join("two")
        server.client.say(at(6, b"new", b"new to both", to=(2,)))
        assert (await again.receive()).body == b"new"
        server.client.say(at(3, b"held", to=(1,)), at(4, b"both", to=(1, 2), here=1), r.Held(0))
        assert [(await one.receive()).body for _ in range(2)] == [b"held", b"both"]


@on_a_loop
async def test_a_group_that_nobody_reads_is_not_filled_by_what_was_given_in_another() -> None:
    async with in_two_groups(window=4) as (server, _, one, two):
        for position in range(3, 23):
            server.client.say(at(position, b"both", to=(1, 2)))
            assert (await one.receive()).body == b"both"
        await settled(one)
        given = [said for said in server.client.told if isinstance(said, r.Credit)]
        assert sum(credit.messages for credit in given if credit.handle == 2) == 20
        assert await is_empty(two)


@on_a_loop
async def test_receiving_all_passes_over_what_was_given_in_another_group() -> None:
    async with in_two_groups() as (server, _, one, two):
        server.client.say(
            at(3, b"two", to=(2,)),
            at(4, b"given", to=(1, 2)),
            r.ViewChange(2, 5, 2, ["a", "z"]),
            at(6, b"given, too", b"both", to=(1, 2)),
            r.ViewChange(2, 8, 3, ["a"]),
        )
        assert [(await one.receive()).body for _ in range(2)] == [b"given", b"given, too"]
        assert [m.body for m in await two.receive_all()] == [b"two", b"both"]
        assert await is_empty(one)


# Listeners.


@on_a_loop
async def test_a_listener_of_a_link_is_told_of_all_groups_in_one_order() -> None:
    async with in_two_groups() as (server, link, one, _):
        server.client.say(deliveries(b"before"))
        await settled(one)
        link.listen(diary := Diary())
        server.client.say(
            deliveries(b"1", handle=2),
            deliveries(b"2"),
            r.ViewChange(2, 0, 7, ["a", "z"]),
            r.Held(20),
            at(21, b"4", to=(2,)),
        )
        await settled(one)
        server.client.say(at(20, b"3", to=(1,)), r.Held(0))
        await settled(one)
        assert diary.told == [[b"before"], [b"1", b"2"], 7, [b"3", b"4"]]
        await link.close()
        assert isinstance(diary.told[-1], Exception)


@on_a_loop
async def test_a_group_with_a_listener_of_its_own_is_read_by_that_alone() -> None:
    async with in_two_groups() as (server, link, one, two):
        link.listen(of_link := Diary())
        one.listen(of_one := Diary())
        server.client.say(deliveries(b"1"), deliveries(b"2", handle=2))
        await settled(one)
        assert (of_link.told, of_one.told) == ([[b"2"]], [[b"1"]])
        one.listen(None)
        link.listen(None)
        server.client.say(deliveries(b"3"), deliveries(b"4", handle=2))
        assert await bodies_by_link(link, 2) == [b"3", b"4"]
        assert await is_empty(two)


@on_a_loop
async def test_listeners_of_groups_are_told_of_a_message_to_several_once() -> None:
    async with in_two_groups() as (server, _, one, two):
        one.listen(of_one := Diary())
        two.listen(of_two := Diary())
        server.client.say(
            at(3, b"both", to=(1, 2)), at(4, b"two", to=(2,)), at(5, b"too", to=(2, 1))
        )
        await settled(one)
        assert of_one.told == [[b"both", b"too"]]
        assert of_two.told == [[b"two"]]


@on_a_loop
async def test_while_a_link_has_a_listener_nobody_receives() -> None:
    async with in_two_groups() as (_, link, one, _):
        link.listen(Deaf())
        for receive in (link.receive, link.receive_all, one.receive, one.receive_all):
            with pytest.raises(UsageError, match=r"link\.listen\(None\) ends that"):
                await receive()
        with pytest.raises(UsageError, match=r"link\.listen\(None\) ends that"):
            link.listen(Deaf())


@on_a_loop
async def test_who_waits_is_not_cut_off_by_a_listener_of_the_link() -> None:
    async with in_two_groups() as (_, link, one, _):
        for receive in (link.receive, one.receive):
            waiting = asyncio.create_task(receive())
            await asyncio.sleep(0)
            with pytest.raises(UsageError, match="somebody waits"):
                link.listen(Deaf())
            waiting.cancel()
            await asyncio.wait([waiting])
        with pytest.raises(UsageError, match="is no listener"):
            link.listen(object())  # type: ignore[arg-type]


@on_a_loop
async def test_what_a_listener_of_a_link_cannot_be_told_is_reported() -> None:
    async with in_two_groups(codec=values) as (server, link, one, _):
        found = reports()
        link.listen(diary := Diary(then=lambda bodies: 1 / (bodies[0] != 1)))
        server.client.say(deliveries(values.encode(1), b"\xc1", values.encode(2)))
        await settled(one)
        server.client.say(r.Refused(None, "too-large", "no", 1))
        await settled(one)
        assert diary.told == [[1], [2]]
        assert [type(error) for _, error in found] == [ZeroDivisionError, PeerError, TooLarge]


@on_a_loop
async def test_leaving_ends_a_group_for_who_reads_by_link() -> None:
    async with in_two_groups() as (server, link, one, two):
        server.client.say(deliveries(b"1"), deliveries(b"2", handle=2))
        await settled(one)
        await one.leave()
        assert (await link.receive()).body == b"2"
        with pytest.raises(NotMember):
            await one.receive()
        assert await is_empty(two)
