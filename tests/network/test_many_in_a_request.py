"""Many messages in one request: each is taken, refused or held up by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from flexgroup import connect
from flexgroup.client.errors import TooLarge
from flexgroup.server.settings import Limits
from flexgroup.wire import requests
from flexgroup.wire.frames import HEADER_BYTES

from ..client.loops import on_a_loop
from .in_process import servers
from .strangers import as_client, encoded


@pytest.mark.parametrize(
    "limits",
    [
        Limits(),
        Limits(pack=1),
        Limits(pack=7),
        Limits(pack=10),
        Limits(pack=3, under_way=2),
        Limits(under_way_bytes=1, pack=10),
        Limits(sends=5, window=3, queue=2),
        Limits(window=8, queue=1),
        Limits(window=1),
        Limits(largest_message=100),
    ],
)
@on_a_loop
async def test_they_are_delivered_in_order_whatever_holds_them_up(limits: Limits) -> None:
    async with (
        servers(2, limits) as (first, second),
        connect(first.address, name="a") as a,
        connect(second.address, name="b") as b,
    ):
        sender, receiver = await a.join("g", "reliable atomic", own=False), await b.join("g")
        bodies = [b"%d" % number for number in range(100)]
        sending = asyncio.create_task(sender.send_all(bodies))
        assert [(await receiver.receive(60)).body for _ in bodies] == bodies
        await sending


@on_a_loop
async def test_envelopes_that_follow_each_other_leave_as_one_delivery() -> None:
    """With all senders, and the position of the first message."""
    async with servers(1, Limits(pack=1)) as (server,):
        (reader, writer), frames = await as_client(server)
        join = requests.Join(1, "g", "m", True)
        writer.write(frames.frame(encoded(requests.Create(0, "g", "fifo", None, True, None), join)))
        writer.write(frames.frame(encoded(requests.Info(2, "g"))))
        told = [one async for one in answers(reader, requests.Description)]
        (joined,) = [one for one in told if isinstance(one, requests.Joined)]
        bodies = [b"%d" % number for number in range(20)]
        writer.write(frames.frame(encoded(requests.Send([joined.handle], bodies))))
        (delivered,) = [one async for one in answers(reader, requests.Delivered)]
        assert isinstance(delivered, requests.Delivered)
        assert [body for sent in delivered.sent for body in sent.bodies] == bodies
        assert {sent.sender for sent in delivered.sent} == {"m"}
        assert delivered.position == joined.position + 1
        writer.close()


async def answers(
    reader: asyncio.StreamReader, last: type[requests.FromServer]
) -> AsyncIterator[requests.FromServer]:
    """What the server says, up to something of this type."""
    said: requests.FromServer | None = None
    while not isinstance(said, last):
        size = int.from_bytes((await reader.readexactly(HEADER_BYTES))[:4], "big")
        content = await reader.readexactly(size)
        for said in msgspec.msgpack.decode(content, type=list[requests.AnyFromServer]):
            yield said


@pytest.mark.parametrize("size", [0, 1, 64, 100])
@on_a_loop
async def test_as_many_as_the_server_takes_fit_into_its_frames(size: int) -> None:
    """Frames are little larger than the largest message."""
    async with servers(1, Limits(largest_message=100)) as (server,), connect(server.address) as a:
        group = await a.join("g", "fifo")
        await group.send_all([bytes(size)] * 3_000)
        received = 0
        while received < 3_000:
            received += len(await group.receive_all(60))
        assert server.acceptor.refusals == {}


@on_a_loop
async def test_one_that_is_too_large_is_refused_and_the_others_are_not() -> None:
    async with servers(1, Limits(largest_message=100)) as (server,), connect(server.address) as a:
        group = await a.join("g", "fifo")
        group.link.connection.outgoing.largest = 1000  # as if the server had said so
        await group.send_all([b"before", bytes(101), b"after", bytes(102)])
        assert [(await group.receive(60)).body for _ in range(2)] == [b"before", b"after"]
        with pytest.raises(TooLarge, match="a message of 102 bytes; this server takes at most 100"):
            await group.receive(60)
        await group.send(b"all the same")
        assert (await group.receive(60)).body == b"all the same"


@pytest.mark.parametrize(
    ("messages", "told"), [(11, "more than messages without a grant"), (0, "malformed requests")]
)
@on_a_loop
async def test_too_many_or_none_at_all_end_the_connection(messages: int, told: str) -> None:
    async with servers(1, Limits(sends=10)) as (server,):
        (reader, writer), frames = await as_client(server)
        writer.write(frames.frame(encoded(requests.Send([1], [b""] * messages))))
        assert await reader.read() == b""
        writer.close()
        (reason,) = server.acceptor.refusals
        assert reason.startswith(told)
