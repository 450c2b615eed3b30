"""What servers answer while they change: a client's requests, one after another.

Sections 3.5.5 and 3.5.6 of the text. The servers run on the test's event loop, so that the last
step of a change can be held up at one of them.
"""

from __future__ import annotations

import asyncio
from functools import partial

import msgspec
import pytest

from flexgroup import Group, connect
from flexgroup.client.errors import NotOwner
from flexgroup.membership.messages import Commit
from flexgroup.server.clients.session import MOST_IN_A_FRAME
from flexgroup.server.clients.turns import REQUEST, SHARE, Turns
from flexgroup.server.settings import Limits
from flexgroup.wire import requests
from flexgroup.wire.frames import FrameReader

from ..client.loops import on_a_loop
from .in_process import Held, servers
from .strangers import as_client, encoded


@on_a_loop
async def test_what_was_created_at_one_server_is_seen_at_another_once_create_has_returned() -> None:
    async with (
        servers(2) as (first, second),
        connect(first.address) as a,
        connect(second.address) as b,
    ):
        commits = Held(first, Commit)
        await Group(a, "new").create("fifo", open=True)
        there = Group(b, "new")
        asked = [asyncio.create_task(ask) for ask in (there.exists(), there.attach())]
        await b.inspect()
        assert not any(question.done() for question in asked)
        commits.release()
        assert await asked[0] is True
        await asked[1]


@on_a_loop
async def test_a_destroyed_group_is_gone_everywhere_once_destroy_has_returned() -> None:
    async with (
        servers(2) as (first, second),
        connect(first.address) as a,
        connect(second.address) as b,
    ):
        await Group(a, "old").create("fifo")
        commits = Held(first, Commit)
        await Group(a, "old").destroy()
        asked = asyncio.create_task(Group(b, "old").exists())
        await b.inspect()
        commits.release()
        assert await asked is False


@on_a_loop
async def test_a_clients_requests_are_carried_out_in_the_order_it_made_them() -> None:
    async with servers(1) as (first,), connect(first.address) as link:
        group = Group(link, "g")
        answers = await asyncio.gather(
            group.exists(), group.create("fifo"), group.exists(), group.destroy(), group.exists()
        )
        assert list(answers) == [False, group, True, None, False]


@on_a_loop
async def test_an_owner_that_never_joined_and_ended_owns_nothing() -> None:
    async with servers(2) as (first, second), connect(second.address, name="b") as b:
        async with connect(first.address, name="a") as a:
            await Group(a, "g").create("fifo", owner="a")
            member = await b.join("g")
            with pytest.raises(NotOwner):
                await member.destroy()
        while (await member.info()).owner is not None:
            await asyncio.sleep(0.01)
        await member.destroy()


@on_a_loop
async def test_who_asks_on_without_reading_the_answers_is_disconnected() -> None:
    async with servers(1, Limits(silent_seconds=0.1)) as (server,):
        (_, writer), frames = await as_client(server)
        questions = encoded(*[requests.Inspect(number) for number in range(MOST_IN_A_FRAME)])
        for _ in range(3):
            writer.write(frames.frame(questions))
        while "unread" not in server.acceptor.refusals:
            await asyncio.sleep(0.01)
        while server.members.sessions:
            await asyncio.sleep(0.01)
        writer.close()


@on_a_loop
async def test_who_asks_for_much_at_once_is_answered_a_little_in_each_round() -> None:
    """What a server says in one round of its event loop, or in two, leaves in one frame."""
    async with servers(1) as (server,):
        (reader, writer), frames = await as_client(server)
        questions = [requests.Exists(number, "none") for number in range(1000)]
        writer.write(frames.frame(encoded(*questions)) + frames.frame(encoded(*questions)))
        answered: list[int] = []
        answers = FrameReader()
        answers.begin_at(1)
        while len(answered) < 2000:
            answers.feed(await reader.read(4096))
            while (content := answers.next_frame()) is not None:
                done = msgspec.msgpack.decode(content, type=list[requests.Done])
                assert len(done) <= 2 * SHARE // REQUEST
                answered += [answer.request for answer in done]
        assert answered == [*range(1000), *range(1000)]
        writer.close()


@on_a_loop
async def test_requests_that_are_refused_at_once_take_turns_as_well() -> None:
    """The server leads, so nothing has to be waited for."""
    async with servers(1) as (server,):
        (reader, writer), frames = await as_client(server)
        joins = [requests.Join(number, "none", "m", True) for number in range(500)]
        writer.write(frames.frame(encoded(*joins)))
        refused = 0
        answers = FrameReader()
        answers.begin_at(1)
        while refused < len(joins):
            answers.feed(await reader.read(4096))
            while (content := answers.next_frame()) is not None:
                said = msgspec.msgpack.decode(content, type=list[requests.Refused])
                assert len(said) <= 2 * SHARE // REQUEST
                refused += len(said)
        writer.close()


@on_a_loop
async def test_clients_that_wait_take_turns() -> None:
    turns = Turns()
    told: list[int] = []
    told_each_round: list[list[int]] = []

    def takes_its_turn(client: int) -> int:
        told.append(client)
        turns.wait(client, lambda: takes_its_turn(client))
        return SHARE

    for client in range(6):
        turns.wait(client, partial(takes_its_turn, client))
    for _ in range(3):
        await asyncio.sleep(0)
        told_each_round.append(list(told))
        told.clear()
    assert told_each_round == [[0, 1, 2, 3], [4, 5, 0, 1], [2, 3, 4, 5]]


@on_a_loop
async def test_a_frame_with_more_requests_than_any_library_sends_is_refused() -> None:
    async with servers(1) as (server,):
        (reader, writer), frames = await as_client(server)
        questions = [requests.Exists(number, "none") for number in range(MOST_IN_A_FRAME + 1)]
        writer.write(frames.frame(encoded(*questions)))
        assert await reader.read() == b""
        assert list(server.acceptor.refusals) == ["malformed requests"]
        writer.close()


@on_a_loop
async def test_servers_without_names_are_called_after_their_ports() -> None:
    async with servers(2, names=("", "")) as started, connect(started[0].address) as link:
        names = [server["name"] for server in (await link.inspect())["servers"]]
        ports = [server.address.rpartition(":")[2] for server in started]
        assert [name.rpartition("-")[2] for name in names] == ports
