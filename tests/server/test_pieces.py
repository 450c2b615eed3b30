"""How frames leave for another server: beats first, and large frames in pieces."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, cast

import pytest

from flexgroup.core.errors import PeerError
from flexgroup.server.connection import Acceptor, Connection, FrameHandler
from flexgroup.server.peers import pieces
from flexgroup.server.peers.pieces import BEGUN, ENDED, PIECE_BYTES, Outgoing, Pieces
from flexgroup.server.settings import Settings
from flexgroup.wire.frames import FrameReader

from ..client.loops import on_a_loop

BEAT = b"\x00", b"a beat"


class NarrowTransport:
    """Takes something, and asks for a pause each time."""

    def __init__(self) -> None:
        self.taken = b""
        self.connection: Connection

    def write(self, data: bytes) -> None:
        self.taken += data
        self.connection.pause_writing()

    def get_write_buffer_size(self) -> int:
        return 1

    def get_extra_info(self, name: str) -> None: ...

    def set_write_buffer_limits(self, high: int) -> None: ...

    def is_closing(self) -> bool:
        return False

    def frames(self) -> list[bytes]:
        reader = FrameReader()
        reader.feed(self.taken)
        return list(iter(reader.next_frame, None))


def narrow_transport() -> NarrowTransport:
    """Return one whose connection leads to somebody unknown."""

    def greet(connection: Connection, content: bytes) -> FrameHandler:
        raise AssertionError("nothing comes in")

    acceptor = Acceptor(
        Settings("s"), greet=greet, metrics_page=lambda: b"", ended=lambda connection: None
    )
    transport = NarrowTransport()
    transport.connection = Connection(acceptor)
    transport.connection.connection_made(cast(asyncio.BaseTransport, transport))
    return transport


def whole(frames: list[bytes]) -> list[bytes]:
    joined, arrived = Pieces(), []
    for frame in frames:
        content = joined.add(frame) if frame[0] in (BEGUN, ENDED) else frame
        if content:
            arrived.append(content)
    return arrived


@on_a_loop
async def test_a_beat_overtakes_what_waits_and_the_rest_of_a_large_frame() -> None:
    transport = narrow_transport()
    outgoing = Outgoing(transport.connection)
    large = b"\x01", bytes(3 * PIECE_BYTES)
    outgoing.gathered += [large, (b"\x02", b"small")]
    outgoing.flush()
    outgoing.overtake(BEAT)
    while outgoing.gathered:
        transport.connection.resume_writing()
        outgoing.flush()
    frames = transport.frames()
    assert [frame[0] for frame in frames] == [BEGUN, 0, BEGUN, ENDED, 2]
    assert whole(frames) == [b"".join(BEAT), b"".join(large), b"\x02small"]


@on_a_loop
async def test_a_large_frame_that_has_not_left_is_held() -> None:
    transport = narrow_transport()
    outgoing = Outgoing(transport.connection)
    large, small = (b"\x00", bytes(3 * PIECE_BYTES)), (b"\x00", b"small")
    outgoing.gathered += [large, small]
    outgoing.flush()
    assert outgoing.holds((b"\x00", bytes(3 * PIECE_BYTES)))
    assert not outgoing.holds((b"\x00", bytes(3 * PIECE_BYTES + 1)))
    assert not outgoing.holds(small)
    outgoing.finish()
    assert not outgoing.holds(large)


@on_a_loop
async def test_frames_of_all_sizes_arrive_whole_and_in_order() -> None:
    transport = narrow_transport()
    random = Random(1)
    outgoing = Outgoing(transport.connection)
    sizes = (1, 100, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES, 150_000)
    sent = []
    for number in range(60):
        frame = b"\x01" + bytes([number]), random.randbytes(random.choice(sizes))
        outgoing.gathered.append(frame)
        sent.append(b"".join(frame))
        if random.random() < 0.5:
            transport.connection.resume_writing()
            outgoing.flush()
    assert outgoing.gathered
    outgoing.finish()
    assert not outgoing.gathered
    assert whole(transport.frames()) == sent


def test_pieces_of_too_much_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cast(Any, pieces), "MOST_BYTES_OF_SERVERS", 10)
    joined = Pieces()
    joined.add(bytes([BEGUN]) + b"12345678")
    with pytest.raises(PeerError, match="over 10 bytes"):
        joined.add(bytes([ENDED]) + b"90a")


def test_pieces_of_nothing_are_refused() -> None:
    with pytest.raises(PeerError, match="empty"):
        Pieces().add(bytes([ENDED]))
