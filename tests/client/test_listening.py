"""Functions instead of receiving: `listen`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flexgroup import FlexGroupError, Group, Listener, Message, View, connect, values
from flexgroup.client.errors import (
    ConnectionLost,
    GroupDestroyed,
    LinkClosed,
    NotMember,
    ServerMisbehaved,
)
from flexgroup.core.errors import PeerError, UsageError
from flexgroup.wire import requests as r

from .chat import STACK, Deaf, Diary, deliveries, in_chat, reports, sent_to
from .loops import on_a_loop
from .stand_in import settled, stand_in


def view(number: int) -> r.ViewChange:
    return r.ViewChange(1, 0, number, ["a", "z"])


def refuse(bodies: list[Any]) -> None:
    raise ValueError(bodies)


# What comes.


@on_a_loop
async def test_what_comes_together_is_one_call() -> None:
    async with in_chat() as (server, _, group):
        group.listen(diary := Diary())
        said = server.client
        frames = (
            said.framed(deliveries(b"1"), deliveries(b"2", b"3")),
            said.framed(deliveries(b"4")),
        )
        said.transport.write(b"".join(frames))
        await settled(group)
        assert diary.told == [[b"1", b"2", b"3", b"4"]]


@on_a_loop
async def test_a_listener_may_do_with_the_list_what_it_likes() -> None:
    async with in_chat(window=8) as (_, _, group):
        all_have_come = asyncio.Event()

        class Emptying(Listener[bytes]):
            def delivered(self, messages: list[Message[bytes]]) -> None:
                if messages[-1].body == b"the last":
                    all_have_come.set()
                messages.clear()

        group.listen(Emptying())
        await group.send_all([*[b""] * 100, b"the last"])
        await all_have_come.wait()


@on_a_loop
async def test_a_listener_gets_messages() -> None:
    async with in_chat() as (_, _, group):
        got: list[Message[bytes]] = []

        class Collector(Listener[bytes]):
            def delivered(self, messages: list[Message[bytes]]) -> None:
                got.extend(messages)

        group.listen(Collector())
        await group.send(b"hello")
        await settled(group)
        assert got == [Message("a", b"hello", "chat")]


@on_a_loop
async def test_what_is_here_already_comes_first_and_at_once() -> None:
    async with in_chat() as (server, _, group):
        server.client.say(deliveries(b"1", b"2"), view(7), deliveries(b"3"))
        await settled(group)
        group.listen(diary := Diary())
        assert diary.told == [[b"1", b"2"], 7, [b"3"]]
        server.client.say(deliveries(b"4"))
        await settled(group)
        assert diary.told[3:] == [[b"4"]]


@on_a_loop
async def test_views_come_in_their_places() -> None:
    async with in_chat() as (server, _, group):
        seen: list[int] = []
        group.listen(diary := Diary(lambda bodies: seen.append(group.view.number)))
        server.client.say(deliveries(b"1"), view(2), view(3), deliveries(b"2"), deliveries(b"3"))
        await settled(group)
        assert diary.told == [[b"1"], 2, 3, [b"2", b"3"]]
        assert seen == [1, 3]


@on_a_loop
async def test_a_window_of_one_is_enough_for_a_listener() -> None:
    async with in_chat(window=1) as (server, _, group):
        group.listen(diary := Diary())
        await group.send_all([b"1", b"2", b"3"])
        await server.client.until_told(r.Credit, 3)
        assert diary.told == [[b"1"], [b"2"], [b"3"]]


@on_a_loop
async def test_changes_and_the_end_need_not_be_listened_to() -> None:
    async with in_chat() as (server, _, group):
        found = reports()
        group.listen(Deaf())
        server.client.say(view(2))
        server.destroy("chat")
        await group.exists()
        assert found == []


# The end.


@on_a_loop
async def test_the_end_comes_after_all_messages_and_once() -> None:
    async with in_chat() as (server, link, group):
        group.listen(diary := Diary())
        server.client.say(deliveries(b"last"), r.Destroyed(1, "it was destroyed"))
        await settled(group)
        await link.close()
        messages, error = diary.told
        assert messages == [b"last"]
        assert isinstance(error, GroupDestroyed)


@on_a_loop
async def test_the_end_is_what_receive_raises() -> None:
    async with in_chat() as (_, _, group):
        group.listen(diary := Diary())
        await group.leave()
        with pytest.raises(NotMember, match="has left") as caught:
            await group.receive()
        assert diary.told == [caught.value]


@on_a_loop
async def test_closing_the_link_ends_listening() -> None:
    async with in_chat() as (_, link, group):
        group.listen(diary := Diary())
        await link.close()
        assert [type(error) for error in diary.told] == [LinkClosed]


@on_a_loop
async def test_losing_the_connection_ends_listening() -> None:
    async with in_chat() as (server, link, group):
        group.listen(diary := Diary())
        server.client.say(deliveries(b"last"))
        server.client.transport.close()
        await link.connection.closed
        assert diary.told[0] == [b"last"]
        assert [type(error) for error in diary.told[1:]] == [ConnectionLost]


@on_a_loop
async def test_what_came_before_nonsense_is_told() -> None:
    async with in_chat() as (server, link, group):
        group.listen(diary := Diary())
        server.client.say(deliveries(b"last"), r.Done(12345))
        await link.connection.closed
        assert diary.told[0] == [b"last"]
        assert [type(error) for error in diary.told[1:]] == [ServerMisbehaved]


@on_a_loop
async def test_who_listens_when_all_is_over_is_told_so() -> None:
    async with in_chat() as (server, _, group):
        server.client.say(deliveries(b"last"), r.Destroyed(1, "it was destroyed"))
        await settled(group)
        group.listen(diary := Diary())
        assert diary.told[0] == [b"last"]
        assert [type(error) for error in diary.told[1:]] == [GroupDestroyed]


@on_a_loop
async def test_who_joins_again_listens_again() -> None:
    async with in_chat() as (server, _, group):
        group.listen(diary := Diary())
        await group.leave()
        await group.join()
        server.client.say(deliveries(b"received"))
        assert (await group.receive()).body == b"received"
        assert len(diary.told) == 1
        group.listen(diary)


# One way at a time.


@on_a_loop
async def test_what_is_listened_to_cannot_be_received() -> None:
    async with in_chat() as (_, _, group):
        begun = group.events()
        await anext(begun)
        group.listen(Deaf())
        for receiving in (group.receive(), group.receive_all(), anext(group), anext(begun)):
            with pytest.raises(UsageError, match=r"has a listener.*listen\(None\) ends that"):
                await receiving
        with pytest.raises(UsageError, match="has a listener"):
            group.events()


@on_a_loop
async def test_one_listener_at_a_time() -> None:
    async with in_chat() as (_, _, group):
        group.listen(first := Diary())
        with pytest.raises(UsageError, match="has a listener"):
            group.listen(second := Diary())
        group.listen(None)
        group.listen(second := Diary())
        await group.send(b"1")
        await settled(group)
        assert (first.told, second.told) == ([], [[b"1"]])


@on_a_loop
async def test_who_waits_for_a_message_is_not_robbed() -> None:
    async with in_chat() as (_, _, group):
        waiting = asyncio.create_task(group.receive())
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="somebody waits"):
            group.listen(Deaf())
        await group.send(b"1")
        assert (await waiting).body == b"1"


@on_a_loop
async def test_who_gave_up_waiting_is_not_in_the_way() -> None:
    async with in_chat() as (_, _, group):
        waiting = asyncio.create_task(group.receive())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        group.listen(Deaf())


@on_a_loop
async def test_who_was_about_to_receive_what_a_listener_got_does_not_wait_for_ever() -> None:
    async with in_chat() as (_, _, group):
        waiting = asyncio.create_task(group.receive())
        await asyncio.sleep(0)
        inbox = group.inbox()
        inbox.put([r.Sent("z", [b"1"])], 2)
        group.listen(diary := Diary())
        with pytest.raises(UsageError, match="has a listener"):
            await waiting
        assert diary.told == [[b"1"]]


@on_a_loop
async def test_only_members_listen() -> None:
    async with stand_in() as server, connect(server.address) as link:
        with pytest.raises(NotMember, match=r"await group.join\(\) first"):
            Group(link, "chat").listen(Deaf())
        await Group(link, "chat").create(STACK, open=True)
        attached = await link.attach("chat")
        with pytest.raises(NotMember, match="only attached"):
            attached.listen(Deaf())


# Listening no more.


@on_a_loop
async def test_after_listening_messages_are_received() -> None:
    async with in_chat() as (server, _, group):
        group.listen(diary := Diary())
        server.client.say(deliveries(b"1"))
        await settled(group)
        group.listen(None)
        group.listen(None)
        server.client.say(deliveries(b"2"))
        assert (await group.receive()).body == b"2"
        assert diary.told == [[b"1"]]


@on_a_loop
async def test_a_listener_that_stops_leaves_the_rest_to_be_received() -> None:
    async with in_chat() as (server, _, group):
        group.listen(diary := Diary(lambda bodies: group.listen(None)))
        server.client.say(deliveries(b"1"), view(2), deliveries(b"2"), view(3), deliveries(b"3"))
        await settled(group)
        assert diary.told == [[b"1"]]
        assert [(await group.receive()).body for _ in range(2)] == [b"2", b"3"]
        assert group.view.number == 3


@on_a_loop
async def test_a_listener_that_stops_leaves_what_cannot_be_read_and_what_follows() -> None:
    async with in_chat(codec=values) as (server, _, group):
        group.listen(diary := Diary(lambda bodies: group.listen(None)))
        server.client.say(deliveries(b"\x01", b"\xc1", b"\x02"))
        await settled(group)
        assert diary.told == [[1]]
        with pytest.raises(PeerError):
            await group.receive()
        assert (await group.receive()).body == 2


@on_a_loop
async def test_a_listener_may_hand_over_to_another() -> None:
    async with in_chat() as (server, _, group):
        second = Diary()

        def hand_over(bodies: list[Any]) -> None:
            group.listen(None)
            group.listen(second)
            assert second.told == []

        group.listen(first := Diary(hand_over))
        server.client.say(deliveries(b"1"), view(2), deliveries(b"2"))
        await settled(group)
        assert first.told == [[b"1"]]
        assert second.told == [2, [b"2"]]


@on_a_loop
async def test_after_listening_views_are_as_they_were_before() -> None:
    async with in_chat() as (server, _, group):
        group.listen(Deaf())
        group.listen(None)
        server.client.say(deliveries(b"1"), view(2), view(3))
        assert (await group.receive()).body == b"1"
        assert group.view.number == 3
        events = group.events()
        group.listen(Deaf())
        group.listen(None)
        server.client.say(view(4), view(5))
        assert [getattr(await anext(events), "number", None) for _ in range(3)] == [3, 4, 5]


# Errors.


@on_a_loop
async def test_what_a_listener_raises_goes_to_the_loop_and_the_next_messages_to_the_listener() -> (
    None
):
    async with in_chat() as (server, link, group):
        found = reports()
        other = await link.join("other", STACK)
        other.listen(undisturbed := Diary())
        group.listen(diary := Diary(refuse))
        server.client.say(
            deliveries(b"1"), deliveries(b"other", handle=2), view(2), deliveries(b"2")
        )
        await settled(group)
        assert diary.told == [[b"1"], 2, [b"2"]]
        assert undisturbed.told == [[b"other"]]
        assert [what for what, _ in found] == ["a listener of the group 'chat' failed"] * 2
        assert [str(error) for _, error in found] == ["[b'1']", "[b'2']"]


@on_a_loop
async def test_messages_that_a_listener_failed_with_count_as_received() -> None:
    async with in_chat(window=1) as (server, _, group):
        found = reports()
        group.listen(Diary(refuse))
        await group.send_all([b"1", b"2", b"3"])
        await server.client.until_told(r.Credit, 3)
        assert len(found) == 3


@on_a_loop
async def test_an_error_in_the_last_call_goes_to_the_loop_too() -> None:
    class Bad(Deaf):
        def changed(self, view: View) -> None:
            raise asyncio.CancelledError("changed")

        def ended(self, error: FlexGroupError) -> None:
            raise RuntimeError("ended")

    async with in_chat() as (server, _, group):
        found = reports()
        group.listen(Bad())
        server.client.say(view(2))
        await settled(group)
        await group.leave()
        assert [str(error) for _, error in found] == ["changed", "ended"]


@on_a_loop
async def test_what_cannot_be_read_is_reported_in_its_place_and_left_out() -> None:
    async with in_chat(window=4, codec=values) as (server, _, group):
        order: list[object] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: order.append(context["exception"])
        )
        group.listen(Diary(order.append))
        server.client.say(deliveries(b"\x01", b"\xc1", b"\xc1", b"\x02"))
        await server.client.until_told(r.Credit, 2)
        first, error, another, last = order
        assert (first, last) == ([1], [2])
        assert type(error) is type(another) is PeerError
        assert str(error).startswith("from 'z' in the group 'chat': ")
        credit = [said.messages for said in server.client.told if isinstance(said, r.Credit)]
        assert sum(credit) == 4


# What a listener may do.


@on_a_loop
async def test_what_listeners_send_leaves_in_one_frame() -> None:
    async with in_chat() as (server, link, group):
        other = await link.join("other", STACK)
        group.listen(Diary(lambda bodies: [group.send_now([b"a"]), group.send_now([b"b", b"c"])]))
        other.listen(Diary(lambda bodies: other.send_now([b"d"])))
        server.deaf_to.add(r.Send)
        await settled(group)
        frames = server.client.frames
        server.client.say(deliveries(b"1"), deliveries(b"2", handle=2))
        await server.client.until_told(r.Send, 4)
        assert sent_to(server) == [b"a", b"b", b"c", b"d"]
        assert server.client.frames == frames + 1


@on_a_loop
async def test_no_function_is_called_while_another_is_running() -> None:
    async with in_chat() as (server, link, group):
        other = await link.join("other", STACK)
        order: list[str] = []

        def begin_with_the_other(bodies: list[Any]) -> None:
            other.listen(Diary(lambda bodies: order.append("other")))
            order.append("chat")

        server.client.say(deliveries(b"2", handle=2))
        await settled(group)
        group.listen(Diary(begin_with_the_other))
        server.client.say(deliveries(b"1"))
        await settled(group)
        assert order == ["chat", "other"]


@on_a_loop
async def test_a_listener_may_leave_by_a_task() -> None:
    async with in_chat() as (server, _, group):
        leaving: list[asyncio.Task[None]] = []
        group.listen(
            diary := Diary(lambda bodies: leaving.append(asyncio.create_task(group.leave())))
        )
        server.client.say(deliveries(b"1"))
        await settled(group)
        await leaving[0]
        assert diary.told[0] == [b"1"]
        assert [type(error) for error in diary.told[1:]] == [NotMember]


@on_a_loop
async def test_the_link_may_end_within_a_function() -> None:
    """As with tasks that begin at once when they are created."""
    async with in_chat() as (server, link, group):
        group.listen(diary := Diary(lambda bodies: link.connection.end(r.Goodbye())))
        server.client.say(deliveries(b"1"), view(2))
        await link.connection.closed
        assert diary.told[:2] == [[b"1"], 2]
        assert [type(error) for error in diary.told[2:]] == [LinkClosed]


@pytest.mark.parametrize("listener", [object(), Deaf])
@on_a_loop
async def test_what_is_no_listener_is_refused(listener: Any) -> None:
    async with in_chat() as (_, _, group):
        with pytest.raises(UsageError, match="is no listener; derive a class from Listener"):
            group.listen(listener)
        group.listen(Deaf())
