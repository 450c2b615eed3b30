"""The floor for Python: processes that pass messages on, without order, repetition or checks.

    python -m peers.relay relay --number 0 --ports 7001,7002,7003 --manner batched
    python -m peers.relay member --number 0 --ports 7001,7002,7003 --loops 21 --payload 64

One relay a machine, fully connected; a member is attached to each. A message goes from the member
to its relay, from there to the other relays and back to the member, and from each other relay to
its member. A frame is a length of four bytes and a body. Three manners:

unbatched   one write a message
batched     what is written to a connection in one turn of the loop is joined
confirmed   batched; the sender's own copy comes when all other relays have confirmed theirs: the
            least that anything needs which promises that all or none have a message
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from struct import Struct
from typing import cast

import uvloop

from flexgroup.load.closed_loops import ClosedLoops
from flexgroup.load.processes import report, wait_to_begin

LENGTH = Struct(">I")
FROM_MEMBER, FROM_RELAY, CONFIRMATION = b"m", b"r", b"c"


class Connection(asyncio.Protocol):
    """Cuts what arrives into frames; writes at once or at the end of the loop's turn."""

    def __init__(self, take: Callable[[Connection, list[bytes]], None], batched: bool) -> None:
        self._take = take
        self._batched = batched
        self._held = b""
        self._out: list[bytes] = []
        self._transport: asyncio.WriteTransport | None = None
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None  # the measurement is over

    def data_received(self, data: bytes) -> None:
        if self._held:
            data = self._held + data
        frames: list[bytes] = []
        start, total = 0, len(data)
        while total - start >= LENGTH.size:
            end = start + LENGTH.size + LENGTH.unpack_from(data, start)[0]
            if end > total:
                break
            frames.append(data[start:end])
            start = end
        self._held = data[start:]
        self._take(self, frames)

    def write(self, frame: bytes) -> None:
        if self._batched:
            if not self._out:
                self._loop.call_soon(self._flush)
            self._out.append(frame)
        elif self._transport is not None:
            self._transport.write(frame)

    def _flush(self) -> None:
        if self._transport is not None:
            self._transport.write(b"".join(self._out))
        self._out.clear()


def framed(body: bytes) -> bytes:
    return LENGTH.pack(len(body)) + body


class Relay:
    """Knows who is at the other end of a connection by the first frame, which has one letter."""

    def __init__(self, number: int, ports: list[int], manner: str) -> None:
        self._number = number
        self._ports = ports
        self._batched = manner != "unbatched"
        self._confirmed = manner == "confirmed"
        self._roles: dict[Connection, bytes] = {}
        self._relays: list[Connection] = []
        self._member: Connection | None = None
        # By the relay that confirms: messages in the order they were sent on, and how many.
        self._waiting: dict[int, int] = {}
        self._sent: list[bytes] = []
        self._first = 0

    def connection(self) -> Connection:
        return Connection(self._take_all, self._batched)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.create_server(self.connection, "127.0.0.1", self._ports[self._number])
        for port in self._ports[: self._number]:
            connection = await connected(port, self.connection)
            connection.write(framed(FROM_RELAY))
            self._meet(connection, FROM_RELAY)
        while len(self._relays) < len(self._ports) - 1:
            await asyncio.sleep(0.01)
        print("ready", flush=True)
        over = asyncio.Event()
        loop.add_reader(sys.stdin.fileno(), over.set)
        await over.wait()

    def _meet(self, connection: Connection, role: bytes) -> None:
        self._roles[connection] = role
        if role == FROM_MEMBER:
            self._member = connection
        else:
            self._relays.append(connection)

    def _take_all(self, connection: Connection, frames: list[bytes]) -> None:
        for frame in frames:
            self._take(connection, frame)

    def _take(self, connection: Connection, frame: bytes) -> None:
        role = self._roles.get(connection)
        if role is None:
            self._meet(connection, frame[LENGTH.size :])
        elif role == FROM_MEMBER:
            for relay in self._relays:
                relay.write(frame)
            if self._confirmed:
                self._sent.append(frame)
            else:
                connection.write(frame)
        elif len(frame) == LENGTH.size + 1:
            self._confirmation(connection)
        elif self._member is not None:
            self._member.write(frame)
            if self._confirmed:
                connection.write(framed(CONFIRMATION))

    def _confirmation(self, connection: Connection) -> None:
        """Connections are FIFO, so the n-th confirmation is for the n-th message."""
        key = self._relays.index(connection)
        self._waiting[key] = self._waiting.get(key, 0) + 1
        everywhere = min(self._waiting.get(each, 0) for each in range(len(self._relays)))
        assert self._member is not None
        for frame in self._sent[: everywhere - self._first]:
            self._member.write(frame)
        del self._sent[: everywhere - self._first]
        self._first = everywhere


async def connected(port: int, connection: Callable[[], Connection]) -> Connection:
    loop = asyncio.get_running_loop()
    while True:
        try:
            return (await loop.create_connection(connection, "127.0.0.1", port))[1]
        except ConnectionRefusedError:
            await asyncio.sleep(0.01)


async def member(number: int, ports: list[int], manner: str, loops: ClosedLoops) -> None:
    def take(connection: Connection, frames: list[bytes]) -> None:
        for body in loops.delivered([frame[LENGTH.size :] for frame in frames]):
            connection.write(framed(body))

    connection = await connected(
        ports[number], lambda: Connection(take, batched=manner != "unbatched")
    )
    connection.write(framed(FROM_MEMBER))
    await asyncio.sleep(0)  # so that it is written before waiting for the word to begin
    first, end = wait_to_begin(loops)
    for body in first:
        connection.write(framed(body))
    await asyncio.sleep(end - time.monotonic())
    report(loops)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("relay", "member"))
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--ports", required=True)
    parser.add_argument("--manner", default="unbatched")
    parser.add_argument("--loops", type=int, default=0)
    parser.add_argument("--payload", type=int, default=64)
    options = parser.parse_args()
    ports = [int(port) for port in options.ports.split(",")]
    if options.part == "relay":
        uvloop.run(Relay(options.number, ports, options.manner).run())
    else:
        loops = ClosedLoops(options.number, options.loops, options.payload)
        uvloop.run(member(options.number, ports, options.manner, loops))


if __name__ == "__main__":
    main()
