"""Connections to a server on the test's event loop that are no library's."""

from __future__ import annotations

import asyncio
import ssl

import msgspec

from flexgroup.protocols.table import PROTOCOLS
from flexgroup.server.peers.introduction import VERSION, PeerHello, encode_introduction
from flexgroup.server.server import GroupServer
from flexgroup.wire import requests
from flexgroup.wire.frames import FrameReader, FrameWriter

Stranger = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def stranger(server: GroupServer, tls: ssl.SSLContext | None = None) -> Stranger:
    host, _, port = server.address.rpartition(":")
    return await asyncio.open_connection(host, int(port), ssl=tls)


def encoded(*asked: requests.AnyFromClient) -> bytes:
    return msgspec.msgpack.encode(asked)


async def as_client(
    server: GroupServer, name: str = "m", tls: ssl.SSLContext | None = None
) -> tuple[Stranger, FrameWriter]:
    """Welcomed, and what it sends from now on numbered as it has to be."""
    reader, writer = await stranger(server, tls)
    frames = FrameWriter()
    writer.write(frames.frame(encoded(requests.Hello(requests.VERSION, name))))
    answers = FrameReader()
    answers.feed(await reader.read(4096))
    answer = answers.next_frame()
    assert answer is not None
    (welcome,) = msgspec.msgpack.decode(answer, type=list[requests.Welcome])
    frames.begin_at(welcome.session)
    return (reader, writer), frames


def introduction(name: str, cluster: str | None = None) -> bytes:
    hello = PeerHello(VERSION, cluster, name, "127.0.0.1:1", None, sorted(PROTOCOLS))
    return FrameWriter().frame(encode_introduction(hello))
