"""Servers on the event loop of the test: what they tell each other can be held up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from flexgroup.membership.messages import ControlMessage
from flexgroup.server.server import GroupServer
from flexgroup.server.settings import Limits, Settings
from flexgroup.wire.certificates import SERVER, client_context, server_context
from flexgroup.wire.seals import read_seal_keys


class Held:
    """What a server would have said to the others of one kind, until it is released."""

    def __init__(self, server: GroupServer, kind: type[ControlMessage]) -> None:
        self._membership = server.membership
        self._kind = kind
        self._held: list[tuple[int, ControlMessage]] = []
        self._say = self._membership.say
        self._membership.say = self._hold

    def _hold(self, server: int, message: ControlMessage) -> None:
        if isinstance(message, self._kind):
            self._held.append((server, message))
        else:
            self._say(server, message)

    def release(self) -> None:
        self._membership.say = self._say
        for server, message in self._held:
            self._say(server, message)


@asynccontextmanager
async def servers(
    count: int,
    limits: Limits | None = None,
    certificates: Path | None = None,
    host: str = "127.0.0.1",
    trace: Path | None = None,
    names: Sequence[str] = ("s1", "s2", "s3"),
    seals: Path | None = None,
) -> AsyncIterator[list[GroupServer]]:
    """Each has joined through the first; with certificates, over TLS; with the keys for seals that
    this folder has."""
    async with AsyncExitStack() as stack:
        started: list[GroupServer] = []
        for number in range(count):
            settings = Settings(
                names[number],
                host=host,
                port=0,
                join=(started[0].address,) if started else (),
                limits=limits or Limits(),
                tls_server=server_context(certificates) if certificates else None,
                tls_client=client_context(certificates, SERVER) if certificates else None,
                trace=trace,
                seals=read_seal_keys(seals, names[number]) if seals else None,
            )
            started.append(await stack.enter_async_context(_running(settings)))
        yield started


@asynccontextmanager
async def _running(settings: Settings) -> AsyncIterator[GroupServer]:
    server = GroupServer(settings)
    ready = asyncio.Event()
    running = asyncio.create_task(server.run(ready.set))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        running.result()
    try:
        yield server
    finally:
        waiting.cancel()
        server.stop()
        await running
