"""Who listens where, and how processes open connections to each other."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from typing import Any, final

from flexgroup.virtual.loop import VirtualLoop
from flexgroup.virtual.network import Network
from flexgroup.virtual.tcp import End, Stream, VirtualSocket
from flexgroup.virtual.world import World

FIRST_DIAL_PAUSE = 1.0
LONGEST_DIAL = 127.0
"""Opening a connection is tried again after so long, and given up after so long."""


@final
class Process(VirtualLoop):
    """A process that can connect to others."""

    def __init__(self, world: World, internet: Internet, machine: str, name: str = "") -> None:
        super().__init__(world, machine, name)
        self._internet = internet

    def kill(self) -> None:
        """End at once; the machine closes the connections."""
        super().kill()
        self._internet.process_ended(self)

    async def create_server(
        self, protocol_factory: Callable[[], Any], host: str, port: int, **options: Any
    ) -> Listener:
        return self._internet.listen(self, protocol_factory, host, port)

    async def create_connection(
        self, protocol_factory: Callable[[], Any], host: str, port: int, **options: Any
    ) -> tuple[End, Any]:
        return await self._internet.connect(self, protocol_factory, host, port)


@final
class Listener:
    """What a process that listens is given."""

    def __init__(
        self,
        internet: Internet,
        loop: Process,
        factory: Callable[[], Any],
        where: tuple[str, int],
    ) -> None:
        self.loop = loop
        self.factory = factory
        self.sockets = [VirtualSocket(*where)]
        self._internet = internet
        self._where = where

    def close(self) -> None:
        self._internet.unlisten(self._where, self)


@final
class Internet:
    """All connections, and who listens where."""

    def __init__(self, world: World, network: Network) -> None:
        self._world = world
        self._network = network
        self._listeners: dict[tuple[str, int], Listener] = {}
        self._ends: dict[End, None] = {}
        self._ports_used = 50_000
        network.when_cut = self._was_cut

    def listen(self, loop: Process, factory: Callable[[], Any], host: str, port: int) -> Listener:
        where = host, port or self._free_port()
        if where in self._listeners:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        self._listeners[where] = listener = Listener(self, loop, factory, where)
        return listener

    def unlisten(self, where: tuple[str, int], listener: Listener) -> None:
        if self._listeners.get(where) is listener:
            del self._listeners[where]

    def _free_port(self) -> int:
        self._ports_used += 1
        return self._ports_used

    async def connect(
        self, loop: Process, factory: Callable[[], Any], host: str, port: int
    ) -> tuple[End, Any]:
        dialled: asyncio.Future[tuple[End, End] | None] = loop.create_future()
        local = loop.machine, self._free_port()
        self._dial(loop, dialled, local, (host, port), FIRST_DIAL_PAUSE)
        ends = await dialled
        if ends is None:
            number = errno.ECONNREFUSED
            raise ConnectionRefusedError(number, os.strerror(number))
        protocol = factory()
        ends[0].made(protocol)
        return ends[0], protocol

    def _dial(
        self,
        loop: Process,
        dialled: asyncio.Future[tuple[End, End] | None],
        local: tuple[str, int],
        remote: tuple[str, int],
        pause: float,
    ) -> None:
        if loop.is_dead or dialled.done():
            return
        if pause > LONGEST_DIAL:
            self._tell(loop, dialled, TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)))
            return
        there = self._network.way(local[0], remote[0])
        back = self._network.way(remote[0], local[0])
        if there.is_cut or back.is_cut:
            self._world.after(pause, self._dial, loop, dialled, local, remote, 2 * pause)
        else:
            travels = back.travel()
            self._world.after(there.travel(), self._dialled, loop, dialled, local, remote, travels)

    def _dialled(
        self,
        loop: Process,
        dialled: asyncio.Future[tuple[End, End] | None],
        local: tuple[str, int],
        remote: tuple[str, int],
        back: float,
    ) -> None:
        """The wish to connect has arrived at the machine; its process need not do anything."""
        listener = self._listeners.get(remote)
        if listener is None:
            self._world.after(back, self._tell, loop, dialled, None)
            return
        here = End(loop, self._world, self._network, local, remote, self.forget)
        there = End(listener.loop, self._world, self._network, remote, local, self.forget)
        here.outgoing = there.incoming = Stream(self._world, self._network, here, there)
        here.incoming = there.outgoing = Stream(self._world, self._network, there, here)
        self._ends[here] = self._ends[there] = None
        listener.loop.arrive(lambda: there.made(listener.factory()))
        self._world.after(back, self._tell, loop, dialled, (here, there))

    def _tell(
        self,
        loop: Process,
        dialled: asyncio.Future[tuple[End, End] | None],
        result: tuple[End, End] | OSError | None,
    ) -> None:
        if dialled.done() or loop.is_dead:  # whoever dialled has given up
            if isinstance(result, tuple):
                result[0].abort()
            return
        if isinstance(result, OSError):
            dialled.set_exception(result)
        else:
            dialled.set_result(result)

    def _was_cut(self) -> None:
        for end in self._ends:
            end.outgoing.wait_for_confirmations()

    def forget(self, end: End) -> None:
        self._ends.pop(end, None)

    def process_ended(self, loop: Process) -> None:
        for where, listener in list(self._listeners.items()):
            if listener.loop is loop:
                del self._listeners[where]
        for end in list(self._ends):
            if end.loop is loop:
                del self._ends[end]
                end.process_ended()
