"""What an application can do with groups, against a server that does its part."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from flexgroup import Group, Link, Message, View, connect, values
from flexgroup.client.errors import (
    AlreadyMember,
    BadStack,
    GroupDestroyed,
    GroupExists,
    LinkClosed,
    MixedStacks,
    NoMessage,
    NoSuchGroup,
    NotAllowed,
    NotMember,
    NotOwner,
    TooLarge,
)
from flexgroup.core.errors import PeerError, UsageError
from flexgroup.wire import requests as r

from .loops import on_a_loop
from .stand_in import stand_in

STACK = "RELIABLE CAUSAL"


@asynccontextmanager
async def two_links() -> AsyncIterator[tuple[Link, Link]]:
    async with (
        stand_in() as server,
        connect(server.address, name="a") as a,
        connect(server.address, name="b") as b,
    ):
        yield a, b


@on_a_loop
async def test_what_one_sends_all_receive_in_order_with_its_name() -> None:
    async with two_links() as (a, b):
        sender = await a.join("chat", STACK)
        receiver = await b.join("chat")
        for number in range(100):
            await sender.send(b"%d" % number)
        for group in (sender, receiver):
            for number in range(100):
                assert await group.receive() == Message("a", b"%d" % number, "chat")


@on_a_loop
async def test_a_member_need_not_receive_its_own_messages() -> None:
    async with stand_in() as server, connect(server.address, name="a") as link:
        group = await link.join("chat", STACK, own=False)
        await group.send(b"not for me")
        server.deliver(server.groups["chat"], "b", b"for me")
        assert (await group.receive()).body == b"for me"


@on_a_loop
async def test_several_groups_share_one_connection() -> None:
    async with stand_in() as server, connect(server.address) as link:
        groups = [await link.join(f"group {number}", STACK) for number in range(5)]
        for group in groups:
            await group.send(group.name.encode())
        for group in groups:
            assert (await group.receive()).body == group.name.encode()
        assert len(server.clients) == 1


@on_a_loop
async def test_a_process_can_have_another_name_in_a_group() -> None:
    async with stand_in() as server, connect(server.address, name="a") as link:
        group = await link.join("chat", STACK, process="anna")
        await group.send(b"")
        assert group.members == ("anna",)
        assert (await group.receive()).sender == "anna"


@on_a_loop
async def test_a_group_is_created_described_and_destroyed_by_its_name() -> None:
    async with stand_in() as server, connect(server.address, name="a") as link:
        group = Group(link, "chat")
        assert not await group.exists()
        await group.create(STACK, owner="a", open=True, allow=["a", "b"])
        assert await group.exists()
        info = await group.info()
        assert (info.name, info.stack, info.owner, info.open) == ("chat", STACK, "a", True)
        assert server.groups["chat"].create.allow == ["a", "b"]
        await group.destroy()
        assert not await group.exists()


@on_a_loop
async def test_joining_creates_a_group_only_if_it_is_missing_and_a_stack_is_given() -> None:
    async with stand_in() as server, connect(server.address) as link:
        with pytest.raises(NoSuchGroup):
            await link.join("chat")
        await Group(link, "chat").create(STACK)
        await link.join("chat", STACK.lower())
        assert sum(isinstance(said, r.Create) for said in server.client.told) == 1


@on_a_loop
async def test_joining_a_group_that_has_another_stack_is_refused() -> None:
    async with stand_in() as server, connect(server.address) as link:
        await Group(link, "chat").create("FIFO")
        with pytest.raises(BadStack, match=r"'FIFO', not 'SKEEN'; join it without"):
            await link.join("chat", "SKEEN")
        assert server.groups["chat"].members == []


@on_a_loop
async def test_what_the_server_refuses_is_an_error_of_that_kind() -> None:
    async with two_links() as (a, b):
        await Group(a, "chat").create(STACK, owner="a", allow=["a", "c"])
        with pytest.raises(GroupExists):
            await Group(b, "chat").create(STACK)
        with pytest.raises(BadStack):
            await Group(b, "other").create("nonsense")
        with pytest.raises(NotAllowed):
            await b.join("chat")
        with pytest.raises(NotOwner):
            await Group(b, "chat").destroy()
        await a.join("chat", process="c")
        with pytest.raises(AlreadyMember):
            await b.join("chat", process="c")


@on_a_loop
async def test_one_link_is_in_a_group_once() -> None:
    async with stand_in() as server, connect(server.address, name="a") as link:
        await link.join("chat", STACK)
        with pytest.raises(AlreadyMember, match="use the object that joined it"):
            await link.join("chat", process="another")
        with pytest.raises(AlreadyMember):
            await link.attach("chat")


@on_a_loop
async def test_names_that_the_server_would_not_take_are_refused_here() -> None:
    async with stand_in() as server, connect(server.address) as link:
        for name in ("", "x" * 201):
            with pytest.raises(UsageError, match="1 to 200 characters"):
                Group(link, name)
            with pytest.raises(UsageError, match="1 to 200 characters"):
                await Group(link, "chat").create(STACK, owner=name)
        with pytest.raises(UsageError, match="the name of a process"):
            connect(server.address, name="")


@pytest.mark.parametrize("timeout", [-1, 0, math.nan])
def test_a_timeout_that_no_server_can_meet_is_refused(timeout: float) -> None:
    with pytest.raises(UsageError, match="give seconds above 0, or None"):
        connect("localhost", timeout=timeout)


@on_a_loop
async def test_a_process_that_is_not_a_member_sends_to_an_open_group() -> None:
    async with two_links() as (a, b):
        inside = await a.join("chat", STACK, open=True)
        outside = await b.attach("chat")
        await outside.send(b"from outside")
        assert await inside.receive() == Message("b", b"from outside", "chat")
        assert inside.members == ("a",)
        with pytest.raises(NotMember, match="only attached"):
            await outside.receive()
        await Group(a, "closed").create(STACK)
        with pytest.raises(NotAllowed):
            await b.attach("closed")


@on_a_loop
async def test_one_message_goes_to_several_groups_at_once() -> None:
    async with stand_in() as server, connect(server.address) as link:
        one, two = await link.join("one", STACK), await link.join("two", STACK)
        await link.multicast([one, two], b"both")
        assert (await one.receive()).body == (await two.receive()).body == b"both"
        sends = [said for said in server.client.told if isinstance(said, r.Send)]
        assert [sorted(send.handles) for send in sends] == [[1, 2]]


@on_a_loop
async def test_one_message_cannot_go_to_groups_without_a_common_order() -> None:
    async with (
        stand_in() as server,
        connect(server.address) as link,
        connect(server.address) as other,
    ):
        one, fifo = await link.join("one", STACK), await link.join("fifo", "FIFO")
        with pytest.raises(MixedStacks, match="'one' has the stack"):
            await link.multicast([one, fifo], b"")
        with pytest.raises(UsageError, match="twice in one message"):
            await link.multicast([one, one], b"")
        with pytest.raises(UsageError, match="different links"):
            await link.multicast([one, await other.join("one")], b"")
        with pytest.raises(UsageError, match="to 0 groups"):
            await link.multicast([], b"")


@on_a_loop
async def test_a_destroyed_group_gives_what_is_deliverable_and_then_an_error() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        await group.send(b"last words")
        await group.destroy()
        assert (await group.receive()).body == b"last words"
        for _ in range(2):
            with pytest.raises(GroupDestroyed, match="it was destroyed"):
                await group.receive()
        with pytest.raises(GroupDestroyed):
            await group.send(b"")
        with pytest.raises(GroupDestroyed):
            await group.leave()
        assert await (await link.join("chat", STACK)).exists()


@on_a_loop
async def test_iterating_ends_with_the_group() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        for number in range(3):
            await group.send(b"%d" % number)
        await group.destroy()
        assert [message.body async for message in group] == [b"0", b"1", b"2"]


@pytest.mark.parametrize("call", [Group.receive, Group.receive_all])
@on_a_loop
async def test_who_waits_for_a_message_is_woken_by_the_end_of_the_group(call: Any) -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        waiting = [asyncio.create_task(call(group)) for _ in range(3)]
        await asyncio.sleep(0)
        server.destroy("chat")
        for error in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(error, GroupDestroyed)


@on_a_loop
async def test_after_leaving_nothing_can_be_sent_or_received_until_joining_again() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        await group.send(b"never received")
        await group.leave()
        assert [message async for message in group] == []
        for forbidden in (group.receive(), group.send(b""), group.leave()):
            with pytest.raises(NotMember, match="has left"):
                await forbidden
        await group.join()
        await group.send(b"back")
        assert (await group.receive()).body == b"back"


@on_a_loop
async def test_a_group_that_was_never_joined_says_so() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = Group(link, "chat")
        for forbidden in (group.receive(), group.send(b""), group.leave(), anext(group)):
            with pytest.raises(NotMember, match=r"await group.join\(\) first"):
                await forbidden
        with pytest.raises(NotMember):
            _ = group.members


@on_a_loop
async def test_a_group_is_joined_and_left_by_async_with() -> None:
    async with stand_in() as server, connect(server.address, name="a") as link:
        await Group(link, "chat").create(STACK)
        async with Group(link, "chat") as group:
            assert server.groups["chat"].members == ["a"]
            await group.send(b"inside")
        assert server.groups["chat"].members == []
        async with Group(link, "chat") as group:
            await group.destroy()
        assert server.groups == {}


@on_a_loop
async def test_the_view_is_that_of_the_next_message() -> None:
    async with two_links() as (a, b):
        group = await a.join("chat", STACK)
        assert group.view == View(1, ("a",), "chat")
        await group.send(b"alone")
        await group.exists()
        other = await b.join("chat")
        assert other.view == View(2, ("a", "b"), "chat")
        await other.send(b"together")
        await group.exists()
        assert group.view.number == 1
        assert (await group.receive()).body == b"alone"
        assert group.members == ("a", "b")
        assert (await group.receive()).body == b"together"


@on_a_loop
async def test_events_are_messages_and_views_each_in_its_place() -> None:
    async with two_links() as (a, b):
        group = await a.join("chat", STACK)
        events = group.events()
        assert await anext(events) == View(1, ("a",), "chat")
        await group.send(b"alone")
        await group.exists()
        other = await b.join("chat")
        await other.send(b"hello")
        await other.leave()
        await group.destroy()
        assert [event async for event in events] == [
            Message("a", b"alone", "chat"),
            View(2, ("a", "b"), "chat"),
            Message("b", b"hello", "chat"),
            View(3, ("a",), "chat"),
        ]


@on_a_loop
async def test_events_go_on_after_a_time_limit_and_after_a_message_that_cannot_be_read() -> None:
    async with stand_in() as server, connect(server.address, name="a") as link:
        group = await link.join("chat", STACK, codec=values.of(int))
        events = group.events()
        await anext(events)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(events), 0)
        server.deliver(server.groups["chat"], "mallory", b"\xc1")
        with pytest.raises(PeerError, match="mallory"):
            await anext(events)
        await group.send(7)
        assert await anext(events) == Message("a", 7, "chat")


@on_a_loop
async def test_views_that_nobody_looks_at_do_not_pile_up() -> None:
    async with stand_in() as server, connect(server.address, name="a") as link:
        group = await link.join("chat", STACK)
        await group.send(b"")
        await group.exists()
        for number in range(2, 1000):
            server.client.say(r.ViewChange(1, 0, number, ["a"]))
        await group.exists()
        assert len(group.inbox().items) == 2
        assert (await group.receive()).body == b""
        assert group.view.number == 999


@on_a_loop
async def test_receiving_with_a_time_limit() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        with pytest.raises(NoMessage, match="within 0 s"):
            await group.receive(timeout=0)
        await group.send(b"now")
        assert (await group.receive(timeout=60)).body == b"now"


@on_a_loop
async def test_a_cancelled_receive_takes_no_message_with_it() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        cancelled, waiting = [asyncio.create_task(group.receive()) for _ in range(2)]
        await asyncio.sleep(0)
        await group.send(b"for the one that waits")
        await server.client.until_told(r.Send)
        # In the iteration in which the first one is woken, and before it runs.
        asyncio.get_running_loop().call_soon(cancelled.cancel)
        assert (await waiting).body == b"for the one that waits"


@on_a_loop
async def test_joining_that_is_given_up_does_not_leave_a_member_behind() -> None:
    async with stand_in() as server, connect(server.address) as link:
        await Group(link, "chat").create(STACK)
        server.deaf_to = {r.Join}
        joining = asyncio.create_task(link.join("chat"))
        await server.client.until_told(r.Join)
        joining.cancel()
        await asyncio.wait([joining])
        server.deaf_to = set()
        again = asyncio.create_task(link.join("chat", process="again"))
        server.do(server.client, server.client.told[-1])
        await server.client.until_told(r.Leave)
        assert (await again).members == ("again",)


@on_a_loop
async def test_values_instead_of_bytes() -> None:
    async with stand_in() as server, connect(server.address, name="a") as link:
        group = await link.join("orders", STACK, codec=values)
        await group.send({"item": "tea", "cups": 2})
        assert (await group.receive()).body == {"item": "tea", "cups": 2}


@on_a_loop
async def test_a_value_that_cannot_be_read_names_its_sender_and_the_next_one_follows() -> None:
    async with stand_in() as server, connect(server.address, name="a") as link:
        group = await link.join("orders", STACK, codec=values.of(int))
        server.deliver(server.groups["orders"], "mallory", b"\xc1")
        await group.send(7)
        with pytest.raises(PeerError, match="from 'mallory' in the group 'orders'"):
            await group.receive()
        assert (await group.receive()).body == 7


@on_a_loop
async def test_only_bytes_of_a_size_that_the_server_takes_are_sent() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group = await link.join("chat", STACK)
        with pytest.raises(TooLarge, match="send it in parts"):
            await group.send(bytes((1 << 20) + 1))
        with pytest.raises(TooLarge, match="give fewer or shorter names"):
            await Group(link, "other").create(STACK, allow=[f"process {n}" for n in range(100_000)])
        with pytest.raises(UsageError, match=r"bytes, not str.*codec=flexgroup.values"):
            await group.send("text")  # type: ignore[arg-type]
        await group.send(bytearray(b"as good"))  # type: ignore[arg-type]
        assert (await group.receive()).body == b"as good"


@on_a_loop
async def test_a_message_that_the_server_refuses_later_is_reported_once() -> None:
    async with stand_in() as server, connect(server.address) as link:
        group, other = await link.join("chat", STACK), await link.join("other", STACK)
        waiting = asyncio.create_task(group.receive())
        server.client.say(r.Refused(None, "too-large", "too large after all", 1))
        with pytest.raises(TooLarge, match="after all"):
            await waiting
        await group.send(b"goes on")
        assert (await group.receive()).body == b"goes on"
        await other.send(b"not concerned")


@on_a_loop
async def test_closing_sends_everything_first_and_ends_what_waits() -> None:
    async with stand_in() as server:
        link = await connect(server.address)
        group = await link.join("chat", STACK, own=False)
        waiting = asyncio.create_task(group.receive())
        iterating = asyncio.create_task(anext(group, None))
        await asyncio.sleep(0)
        for _ in range(10):
            await group.send(bytes(100_000))
        await link.close()
        await server.client.is_gone.wait()
        assert sum(isinstance(said, r.Send) for said in server.client.told) == 10
        assert isinstance(server.client.told[-1], r.Goodbye)
        assert await iterating is None
        with pytest.raises(LinkClosed):
            await waiting
        for forbidden in (group.send(b""), group.exists(), link.join("other")):
            with pytest.raises(LinkClosed, match="connect again"):
                await forbidden
        await link.close()


@on_a_loop
async def test_the_server_can_be_inspected() -> None:
    async with stand_in() as server, connect(server.address) as link:
        assert await link.inspect() == {"name": "stand-in"}
        assert link.server == "stand-in"


@on_a_loop
async def test_names_where_groups_or_lists_are_wanted() -> None:
    names: Any = ["chat", "other"]
    one_text: Any = "alice"
    async with stand_in() as server, connect(server.address) as link:
        with pytest.raises(UsageError, match="a message to 'chat', which is no Group"):
            await link.multicast(names, b"")
        with pytest.raises(UsageError, match="allow='alice' is one text; give a list"):
            await Group(link, "chat").create("FIFO", allow=one_text)
