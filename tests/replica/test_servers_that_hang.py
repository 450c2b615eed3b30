"""A server that is connected and silent."""

from __future__ import annotations

import asyncio

from flexgroup.replicated import Counter

from ..client.loops import on_a_loop
from ..network.in_process import servers


class Relay:
    """Stands between a client and a server, until it passes on nothing more."""

    def __init__(self, address: str) -> None:
        self._host, _, self._port = address.rpartition(":")
        self.passes = True
        self.is_given_up = asyncio.Event()
        self._pumps: list[asyncio.Task[None]] = []
        self._sinks: list[asyncio.StreamWriter] = []

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        away_reader, away_writer = await asyncio.open_connection(self._host, self._port)
        for source, sink in ((reader, away_writer), (away_reader, writer)):
            self._pumps.append(asyncio.create_task(self._pump(source, sink)))
            self._sinks.append(sink)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(1 << 16):
            if self.passes:
                sink.write(data)
        self.is_given_up.set()

    def close(self) -> None:
        for pump in self._pumps:
            pump.cancel()
        for sink in self._sinks:
            sink.close()


@on_a_loop
async def test_a_call_goes_on_at_another_server_when_the_first_one_is_silent() -> None:
    async with servers(2) as (first, second):
        relay = Relay(first.address)
        listening = await asyncio.start_server(relay.connected, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        counter = await Counter().join("it", [f"127.0.0.1:{port}", second.address], timeout=1)
        assert await counter.add() == 1
        relay.passes = False
        call = asyncio.ensure_future(counter.add())
        await relay.is_given_up.wait()
        relay.close()  # as the other servers take who is silent for dead
        assert await call == 2
        await counter.leave()
        listening.close()
