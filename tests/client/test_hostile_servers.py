"""Whatever is at the other end: a clear error for everybody who waits, and never a hang."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from struct import Struct

import pytest
from msgspec.msgpack import encode

from flexgroup import Group, Link, connect
from flexgroup.client.errors import (
    CannotConnect,
    ConnectionLost,
    NoAnswer,
    Refusal,
    ServerClosing,
    ServerMisbehaved,
    VersionMismatch,
    refusal,
)
from flexgroup.core.errors import FlexGroupError, PeerError, UsageError
from flexgroup.wire import refusals
from flexgroup.wire import requests as r
from flexgroup.wire.frames import MOST_BYTES

from .loops import on_a_loop
from .stand_in import Client, StandIn, stand_in

HEADER = Struct(">II")

Mischief = Callable[[Client], bytes]


def delivery(handle: int, body: bytes) -> r.Delivered:
    """One message, from b."""
    return r.Delivered([handle], 1, 0, [r.Sent("b", [body])])


def frame(number: int, content: bytes) -> bytes:
    return HEADER.pack(len(content), number) + content


# What a server says to a client that is a member of a group with the handle 1, where three frames
# have gone before and request 99 was not made.
MISCHIEF: dict[str, tuple[Mischief, str]] = {
    "not a frame": (lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n", "a frame of 1213486160"),
    "an oversized frame": (lambda _: HEADER.pack(MOST_BYTES + 1, 3), "at most 16777216"),
    "a frame twice": (lambda _: frame(2, encode([])), "frame number 2 where 3 was due"),
    "not MessagePack": (lambda _: frame(3, b"\xc1"), "malformed"),
    "half a message": (lambda _: frame(3, encode([[7, 1]])), "at least length 5"),
    "a message of no kind": (lambda _: frame(3, encode([[77, 1]])), "Invalid value 77"),
    "a list without end": (lambda _: frame(3, b"\xdd\xff\xff\xff\xff"), "truncated"),
    "a deep well": (lambda _: frame(3, b"\x91" * 100_000), "Expected `int`"),
    "a text that is none": (
        lambda _: frame(3, b"\x91\x95\x07\x91\x01\x01\x01\x91\x92\xa1\xff\xc4\x00"),
        "utf-8",
    ),
    "a delivery for no group": (
        lambda c: c.framed(delivery(9, b"")),
        "handle 9",
    ),
    "a view of no group": (lambda c: c.framed(r.ViewChange(9, 0, 1, [])), "handle 9"),
    "an end of no group": (lambda c: c.framed(r.Destroyed(9, "")), "handle 9"),
    "an answer to nothing": (lambda c: c.framed(r.Done(99)), "request 99, which was not made"),
    "an answer of another kind": (
        lambda c: c.framed(r.Done(c.told[-1].request)),  # type: ignore[union-attr]
        "Done in answer to request .*, where Description was due",
    ),
    "a second welcome": (lambda c: c.framed(c.server.welcome()), "a second welcome"),
    "more than the credit": (
        lambda c: c.framed(*[delivery(1, b"") for _ in range(c.server.window + 1)]),
        "more deliveries than",
    ),
    "a delivery out of order": (
        lambda c: c.framed(
            r.Delivered([1], 1, 5, [r.Sent("b", [b""])]),
            r.Delivered([1], 1, 5, [r.Sent("b", [b""])]),
        ),
        "at position 5 what follows 5",
    ),
    "a delivery to a group and to no group": (
        lambda c: c.framed(r.Delivered([1, 9], 2, 5, [r.Sent("b", [b""])])),
        "handle 9",
    ),
}


@asynccontextmanager
async def a_member() -> AsyncIterator[tuple[StandIn, Link, Group[bytes]]]:
    async with stand_in() as server, connect(server.address) as link:
        await Group(link, "chat").create("FIFO")
        group = await link.join("chat")
        yield server, link, group


@pytest.mark.parametrize("name", MISCHIEF)
@on_a_loop
async def test_mischief_ends_the_connection_with_an_error_that_tells_it(name: str) -> None:
    mischief, told = MISCHIEF[name]
    async with a_member() as (server, _, group):
        server.deaf_to = {r.Info}
        asking = asyncio.create_task(group.info())
        receiving = [asyncio.create_task(group.receive()) for _ in range(100)]
        await server.client.until_told(r.Info)
        server.client.transport.write(mischief(server.client))
        with pytest.raises(ServerMisbehaved, match=told) as caught:
            await asking
        assert isinstance(caught.value, PeerError)
        assert "check the address" in str(caught.value)
        outcomes = await asyncio.gather(*receiving, return_exceptions=True)
        assert isinstance(outcomes[-1], ServerMisbehaved)
        with pytest.raises(ServerMisbehaved):
            await group.send(b"")
        await server.client.is_gone.wait()


@on_a_loop
async def test_frames_may_come_byte_by_byte() -> None:
    async with stand_in() as server:
        server.is_polite = False
        connecting = asyncio.ensure_future(_connected(server.address))
        while not server.clients:
            await asyncio.sleep(0)
        await server.client.until_told(r.Hello)
        for byte in server.client.framed(server.welcome()):
            server.client.transport.write(bytes([byte]))
            await asyncio.sleep(0)
        link = await connecting
        assert await Group(link, "chat").exists() is False
        await link.close()


async def _connected(address: str) -> Link:
    return await connect(address)


@on_a_loop
async def test_before_the_welcome_little_is_read() -> None:
    async with stand_in() as server:
        server.is_polite = False
        connecting = asyncio.ensure_future(_connected(server.address))
        while not server.clients:
            await asyncio.sleep(0)
        server.client.transport.write(HEADER.pack(5000, 0))
        with pytest.raises(ServerMisbehaved, match="at most 4096"):
            await connecting


@on_a_loop
async def test_a_server_that_never_says_anything() -> None:
    async with stand_in() as server:
        server.is_polite = False
        with pytest.raises(CannotConnect, match=r"no answer from .* within 0\.05 s"):
            await connect(server.address, timeout=0.05)
        await server.client.is_gone.wait()


@on_a_loop
async def test_a_server_that_does_not_answer_a_request() -> None:
    async with stand_in() as server, connect(server.address, timeout=0.05) as link:
        server.deaf_to = {r.Exists}
        with pytest.raises(NoAnswer, match=r"has not answered for 0\.05 s"):
            await Group(link, "chat").exists()
        server.do(server.client, server.client.told[-1])
        server.deaf_to = set()
        assert await Group(link, "chat").exists() is False


@on_a_loop
async def test_nobody_there() -> None:
    async with stand_in() as server:
        address = server.address
    with pytest.raises(CannotConnect, match="start a server"):
        await connect(address)


@on_a_loop
async def test_no_such_socket(tmp_path: Path) -> None:
    with pytest.raises(CannotConnect, match="No such file"):
        await connect(f"unix:{tmp_path / 'socket'}")


@on_a_loop
async def test_a_server_that_hangs_up_at_once() -> None:
    async with stand_in() as server:
        server.is_polite = False
        connecting = asyncio.ensure_future(_connected(server.address))
        while not server.clients:
            await asyncio.sleep(0)
        server.client.transport.close()
        with pytest.raises(CannotConnect, match=r"without a welcome; does it want TLS.* log says"):
            await connecting


@on_a_loop
async def test_a_server_that_refuses_the_client() -> None:
    async with stand_in() as server:
        server.is_polite = False
        connecting = asyncio.ensure_future(_connected(server.address))
        while not server.clients:
            await asyncio.sleep(0)
        server.client.say(r.Refused(None, "bad-version", "this server speaks version 2"))
        with pytest.raises(VersionMismatch, match="version 2"):
            await connecting


@on_a_loop
async def test_a_connection_that_breaks_in_the_middle_of_a_frame() -> None:
    async with a_member() as (server, _, group):
        receiving = asyncio.create_task(group.receive())
        server.client.transport.write(server.client.framed(delivery(1, b"half"))[:-1])
        server.client.transport.close()
        with pytest.raises(ConnectionLost, match="in the middle of a frame"):
            await receiving


@on_a_loop
async def test_what_was_delivered_before_the_end_can_be_received() -> None:
    async with a_member() as (server, _, group):
        server.client.say(
            r.Delivered([1], 1, 0, [r.Sent("b", [b"one"])]),
            r.Delivered([1], 1, 0, [r.Sent("b", [b"two"])]),
        )
        server.client.say(r.Closing("the server is shutting down"))
        assert (await group.receive()).body == b"one"
        assert (await anext(group)).body == b"two"
        with pytest.raises(ServerClosing, match="shutting down"):
            await anext(group)


@on_a_loop
async def test_leaving_a_group_whose_server_is_gone_is_no_error_of_async_with() -> None:
    async with a_member() as (server, link, member):
        await member.leave()
        async with Group(link, "chat"):
            server.client.transport.abort()
            await server.client.is_gone.wait()


CODES = sorted(
    code for name, code in vars(refusals).items() if name.isupper() and isinstance(code, str)
)


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_its_own_error(code: str) -> None:
    error = refusal(code, "why, and what to do")
    assert type(error) not in (Refusal, FlexGroupError)
    assert isinstance(error, FlexGroupError)
    assert error.code == code
    assert str(error) == "why, and what to do"
    assert type(error).__doc__


def test_a_code_from_the_future_is_kept() -> None:
    error = refusal("too-hot", "wait")
    assert type(error) is Refusal
    assert error.code == "too-hot"


def test_a_local_socket_has_no_tls(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="leave it out"):
        connect("unix:socket", tls=tmp_path)


def test_a_folder_without_a_certificate_for_this_process(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="flexgroup certificates"):
        connect("localhost", name="alice", tls=tmp_path)
