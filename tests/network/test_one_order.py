"""What a server delivers to a client in several groups, when some of them are not read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from flexgroup import Group, Link, connect
from flexgroup.server.server import GroupServer
from flexgroup.server.settings import Limits

from ..client.loops import on_a_loop
from .in_process import servers

WINDOW = 4
STACK = "fifo"

Two = tuple[GroupServer, Link, Group[bytes], Group[bytes]]


@asynccontextmanager
async def in_two_groups(own: bool = True) -> AsyncIterator[Two]:
    """A member of two groups at a server that sends little ahead."""
    async with (
        servers(1, Limits(window=WINDOW)) as (server,),
        connect(server.address, name="a") as link,
    ):
        one = await link.join("one", STACK, own=own)
        yield server, link, one, await link.join("two", STACK)


async def numbers(queue: Link | Group[bytes], count: int) -> list[int]:
    return [int((await queue.receive()).body) for _ in range(count)]


async def send_to_one_and_both(link: Link, one: Group[bytes], two: Group[bytes], most: int) -> None:
    """Numbers up to the most: to both groups if they are odd."""
    for number in range(most):
        await link.multicast([one, two] if number % 2 else [one], b"%d" % number)


@on_a_loop
async def test_more_than_the_windows_is_read_by_link_in_order() -> None:
    async with in_two_groups() as (_, link, one, two):
        await send_to_one_and_both(link, one, two, 40)
        assert await numbers(link, 40) == list(range(40))


@on_a_loop
async def test_a_group_that_is_not_read_does_not_hold_up_one_with_common_messages() -> None:
    async with in_two_groups() as (_, link, one, two):
        await send_to_one_and_both(link, one, two, 40)
        assert await numbers(two, 20) == list(range(1, 40, 2))
        assert await numbers(one, 20) == list(range(0, 40, 2))


@on_a_loop
async def test_reading_by_link_can_begin_anywhere() -> None:
    async with in_two_groups() as (_, link, one, two):
        await send_to_one_and_both(link, one, two, 40)
        assert await numbers(two, 10) == list(range(1, 20, 2))
        assert await numbers(link, 30) == [*range(0, 20, 2), *range(20, 40)]


@on_a_loop
async def test_who_leaves_a_group_with_a_full_window_receives_in_the_other() -> None:
    async with in_two_groups() as (_, link, one, two):
        await send_to_one_and_both(link, one, two, 40)
        assert await numbers(one, 2) == [0, 1]
        await one.leave()
        assert await numbers(link, 19) == list(range(3, 40, 2))
        await two.send(b"40")
        assert await numbers(two, 1) == [40]


@on_a_loop
async def test_a_group_may_want_the_own_messages_of_a_member_that_another_does_not() -> None:
    async with in_two_groups(own=False) as (server, link, one, two):
        async with connect(server.address, name="b") as other:
            theirs = [await other.join("one"), await other.join("two")]
            for number in range(0, 20, 2):
                await link.multicast([one, two], b"%d" % number)
                await other.multicast(theirs, b"%d" % (number + 1))
                await asyncio.sleep(0)
            messages = [await link.receive() for _ in range(20)]
        assert sorted(int(message.body) for message in messages) == list(range(20))
        for message in messages:
            assert message.groups == (("two",) if message.sender == "a" else ("one", "two"))
        positions = [message.position for message in messages]
        assert positions == sorted(set(positions))


@on_a_loop
async def test_a_client_is_told_what_is_held_back_only_while_something_is() -> None:
    async with in_two_groups() as (_, link, one, two):
        await one.send_all([b"%d" % number for number in range(4 * WINDOW)])
        await two.send(b"-1")
        assert await numbers(two, 1) == [-1]
        assert link.connection.order.held > 0
        assert await numbers(link, 4 * WINDOW) == list(range(4 * WINDOW))
        await one.exists()
        assert link.connection.order.held == 0
