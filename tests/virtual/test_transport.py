"""The model of TCP and real sockets: what a process notices is the same on both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from flexgroup.virtual.internet import Internet, Process
from flexgroup.virtual.network import Latency, Network
from flexgroup.virtual.world import World

Scenario = Callable[[str], Coroutine[Any, Any, None]]
LARGE = bytes(range(256)) * 8192  # two megabytes: more than all buffers together


def in_virtual_time(scenario: Scenario) -> None:
    world = World(0)
    internet = Internet(world, Network(world, Latency()))
    loop = Process(world, internet, "here")
    task = loop.create_task(scenario("here"))
    world.run(60.0)
    assert task.done()
    task.result()
    loop.end()
    assert loop.errors == []


def on_real_sockets(scenario: Scenario) -> None:
    asyncio.run(asyncio.wait_for(scenario("127.0.0.1"), 60.0))


@pytest.fixture(params=[in_virtual_time, on_real_sockets])
def run(request: pytest.FixtureRequest) -> Callable[[Scenario], None]:
    runner: Callable[[Scenario], None] = request.param
    return runner


class Peer(asyncio.Protocol):
    """Writes down what happens to one end of a connection."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.happened: list[str] = []
        self.lost_with: Exception | None = None
        loop = asyncio.get_running_loop()
        self.made: asyncio.Future[asyncio.Transport] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.resumed: asyncio.Future[None] = loop.create_future()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.made.set_result(cast(asyncio.Transport, transport))

    def data_received(self, data: bytes) -> None:
        assert data
        self.received += data
        for size, waiter in self._waiting:
            if len(self.received) >= size and not waiter.done():
                waiter.set_result(None)

    def eof_received(self) -> bool:
        self.happened.append("end of stream")
        return False

    def pause_writing(self) -> None:
        self.happened.append("pause")

    def resume_writing(self) -> None:
        self.happened.append("resume")
        if not self.resumed.done():
            self.resumed.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        self.happened.append("lost")
        self.lost_with = error
        self.ended.set_result(None)

    async def has(self, size: int) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append((size, waiter))
        if len(self.received) >= size:
            waiter.set_result(None)
        await waiter


class Pair:
    """Two ends of a connection: `near` dialled, `far` was dialled."""

    near: Peer
    far: Peer
    here: asyncio.Transport
    there: asyncio.Transport


async def connected(host: str) -> tuple[Pair, asyncio.Server]:
    loop = asyncio.get_running_loop()
    pair = Pair()
    pair.far = Peer()
    server = await loop.create_server(lambda: Peer() if pair.far.made.done() else pair.far, host, 0)
    port = server.sockets[0].getsockname()[1]
    _, pair.near = await loop.create_connection(Peer, host, port)
    pair.here, pair.there = await pair.near.made, await pair.far.made
    return pair, server


def test_bytes_arrive_in_the_order_of_writing(run: Callable[[Scenario], None]) -> None:
    async def scenario(host: str) -> None:
        pair, server = await connected(host)
        for number in range(1000):
            pair.here.write(b"%d," % number)
        text = b"".join(b"%d," % number for number in range(1000))
        await pair.far.has(len(text))
        assert pair.far.received == text
        pair.there.write(b"back")
        await pair.near.has(4)
        assert pair.near.received == b"back"
        pair.here.close()
        await pair.far.ended
        server.close()

    run(scenario)


def test_what_was_written_before_closing_arrives_and_then_the_end(
    run: Callable[[Scenario], None],
) -> None:
    async def scenario(host: str) -> None:
        pair, server = await connected(host)
        pair.here.write(LARGE)
        pair.here.close()
        pair.here.write(b"too late")
        await pair.far.ended
        assert pair.far.received == LARGE
        assert pair.far.happened == ["end of stream", "lost"]
        assert pair.far.lost_with is None
        await pair.near.ended
        assert pair.near.lost_with is None
        server.close()

    run(scenario)


def test_a_writer_is_paused_while_the_other_end_does_not_read(
    run: Callable[[Scenario], None],
) -> None:
    async def scenario(host: str) -> None:
        pair, server = await connected(host)
        pair.there.pause_reading()
        for _ in range(16):
            pair.here.write(LARGE)
        assert pair.near.happened == ["pause"]
        assert pair.here.get_write_buffer_size() > 0
        await asyncio.sleep(0.05)
        assert pair.near.happened == ["pause"]
        pair.there.resume_reading()
        await pair.near.resumed
        await pair.far.has(16 * len(LARGE))
        assert pair.far.received == 16 * LARGE
        pair.there.close()
        await pair.near.ended
        server.close()

    run(scenario)


def test_nobody_listens(run: Callable[[Scenario], None]) -> None:
    async def scenario(host: str) -> None:
        pair, server = await connected(host)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await asyncio.sleep(0.01)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.get_running_loop().create_connection(Peer, host, port)
        pair.here.write(b"what is connected stays so")
        await pair.far.has(26)
        pair.here.close()
        await pair.far.ended

    run(scenario)


def test_an_end_that_is_aborted_is_reset(run: Callable[[Scenario], None]) -> None:
    async def scenario(host: str) -> None:
        pair, server = await connected(host)
        pair.there.pause_reading()
        pair.here.write(b"this is never read")
        await asyncio.sleep(0.05)
        pair.there.abort()
        await pair.near.ended
        assert isinstance(pair.near.lost_with, ConnectionResetError)
        assert pair.far.lost_with is None
        server.close()

    run(scenario)


def test_whoever_gives_up_connecting_is_not_connected(run: Callable[[Scenario], None]) -> None:
    async def scenario(host: str) -> None:
        loop = asyncio.get_running_loop()
        pair, server = await connected(host)
        port = server.sockets[0].getsockname()[1]
        dial = loop.create_task(loop.create_connection(Peer, host, port))
        await asyncio.sleep(0)
        dial.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dial
        pair.here.close()
        await pair.far.ended
        server.close()

    run(scenario)
