"""A model of TCP: what processes notice of it, without its packets.

Each direction of a connection is a stream of bytes that arrive in order. While a way is cut,
what is under way waits and is sent again after pauses that double, so that a connection survives
a short cut and tells of a long one late. A process that ends has its connections closed by its
machine; a machine that cannot be reached tells nothing.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from flexgroup.virtual.loop import VirtualLoop
from flexgroup.virtual.network import Network
from flexgroup.virtual.world import World

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 120.0
"""How long a sender waits before it sends again what was not confirmed: at first, at the most."""

FIRST_DIAL_PAUSE = 1.0
LONGEST_DIAL = 127.0
"""Opening a connection is tried again after so long, and given up after so long."""

WINDOW = 256 << 10
"""The bytes that the machines hold for a direction, under way or not read yet."""

HIGH_WATER = 64 << 10
LOW_WATER = 16 << 10
"""A process is asked to pause, and to go on, when so many bytes are held for it by its loop."""

END = b""
"""Stands in a stream for its end."""


class VirtualSocket:
    """The little that is asked of a socket beside its connection."""

    family = socket.AF_INET

    def __init__(self, host: str, port: int) -> None:
        self._name = host, port
        self.user_timeout = float("inf")
        """How many seconds what was sent may stay unconfirmed before the connection is given up."""

    def fileno(self) -> int:
        return -1  # as of a socket that is closed: there is no file to write to

    def getsockname(self) -> tuple[str, int]:
        return self._name

    def setsockopt(self, level: int, option: int, value: int) -> None:
        if (level, option) == (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT):
            self.user_timeout = value / 1000


class Process(VirtualLoop):
    """A process that can connect to others."""

    def __init__(self, world: World, internet: Internet, machine: str) -> None:
        super().__init__(world, machine)
        self._internet = internet

    def kill(self) -> None:
        """End at once; the machine closes the connections."""
        super().kill()
        self._internet.process_ended(self)

    async def create_server(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], host: str, port: int, **options: Any
    ) -> Listener:
        return self._internet.listen(self, protocol_factory, host, port)

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], host: str, port: int, **options: Any
    ) -> tuple[End, Any]:
        return await self._internet.connect(self, protocol_factory, host, port)


class Stream:
    """One direction of a connection."""

    def __init__(self, world: World, network: Network, source: End, target: End) -> None:
        self._world = world
        self._network = network
        self._source = source
        self._target = target
        self._arrives = 0.0
        """When the last of what was sent arrives: nothing overtakes it."""
        self._lost: deque[bytes] = deque()
        """What did not get through, and what came behind it, until it is sent again."""
        self._unconfirmed = 0
        self._unconfirmed_since = 0.0
        self._pause = FIRST_PAUSE
        self._is_repeating = False
        self.is_dead = False
        """One of the ends was reset: nothing passes any more."""

    @property
    def room(self) -> int:
        return WINDOW - self._unconfirmed - self._target.unread

    def send(self, data: bytes) -> None:
        if not self._unconfirmed:
            self._unconfirmed_since = self._world.now
        self._unconfirmed += len(data) or 1
        if self._lost:
            self._lost.append(data)
        else:
            self._transmit(data)

    def _transmit(self, data: bytes) -> None:
        network, source, target = self._network, self._source.machine, self._target.machine
        arrives = self._world.now + network.travel(source, target)
        self._arrives = max(self._arrives, arrives)
        self._world.at(self._arrives, self._arrive, data)

    def _arrive(self, data: bytes) -> None:
        if self.is_dead:
            return
        if self._lost or not self._network.is_open(self._source.machine, self._target.machine):
            self._lost.append(data)
            self._repeat_later()
            return
        self._pause = FIRST_PAUSE
        self._target.take(data)
        self.confirm(len(data) or 1)

    def confirm(self, size: int) -> None:
        """Tell the sender that so much has arrived, and how much room there is for more."""
        network, source, target = self._network, self._source.machine, self._target.machine
        self._world.after(network.travel(target, source), self._confirmed, size, FIRST_PAUSE)

    def _confirmed(self, size: int, pause: float) -> None:
        if self.is_dead:
            return
        if not self._network.is_open(self._target.machine, self._source.machine):
            if not self._gives_up():
                next_pause = min(2 * pause, LONGEST_PAUSE)
                self._world.after(pause, self._confirmed, size, next_pause)
            return
        self._unconfirmed -= size
        self._unconfirmed_since = self._world.now
        self._source.pump()

    def _repeat_later(self) -> None:
        if not self._is_repeating:
            self._is_repeating = True
            self._world.after(self._pause, self._repeat)
            self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _repeat(self) -> None:
        self._is_repeating = False
        if self.is_dead or self._gives_up():
            return
        if not self._network.is_open(self._source.machine, self._target.machine):
            self._repeat_later()
            return
        lost, self._lost = self._lost, deque()
        for data in lost:
            self._transmit(data)

    def _gives_up(self) -> bool:
        unconfirmed_for = self._world.now - self._unconfirmed_since
        if unconfirmed_for < self._source.socket.user_timeout:
            return False
        self._source.fail(errno.ETIMEDOUT)
        return True


class End(asyncio.Transport):
    """One end of a connection, as its process sees it."""

    def __init__(
        self, loop: Process, internet: Internet, local: tuple[str, int], remote: tuple[str, int]
    ) -> None:
        super().__init__()
        self.machine = loop.machine
        self.socket = VirtualSocket(*local)
        self.outgoing: Stream
        self.incoming: Stream
        self._loop = loop
        self._internet = internet
        self._remote = remote
        self._protocol: Any = None
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._unread: deque[bytes] = deque()
        self.unread = 0
        self._is_read_due = False
        self._is_reading = True
        self._is_paused = False
        self._is_closing = False
        self._is_ended = False
        """The process has been told that the connection is lost, or is about to be."""
        self._has_sent_end = False

    # What the machine does.

    def made(self, protocol: Any) -> None:
        """The process learns of the connection, in its own round."""
        self._protocol = protocol
        protocol.connection_made(self)
        self._read_later()

    def take(self, data: bytes) -> None:
        """Something has come."""
        if self._is_ended or self._loop.is_dead:
            if data is not END:
                self._reset_other_end()
            return
        self._unread.append(data)
        self.unread += len(data)
        self._read_later()

    def _read_later(self) -> None:
        if (
            self._unread
            and self._is_reading
            and self._protocol is not None
            and not self._is_read_due
        ):
            self._is_read_due = True
            self._loop.arrive(self._read)

    def _read(self) -> None:
        self._is_read_due = False
        if self._is_ended or not self._is_reading:
            return
        parts: list[bytes] = []
        while self._unread and self._unread[0] is not END:
            parts.append(self._unread.popleft())
        if parts:
            data = b"".join(parts)
            self.unread -= len(data)
            self.incoming.confirm(0)
            if not self._is_closing:
                self._protocol.data_received(data)
        if self._unread and self._unread[0] is END and not self._is_ended:
            self._unread.popleft()
            if not self._protocol.eof_received():
                self.close()

    def pump(self) -> None:
        """Send what the machines have room for."""
        while self._unsent and (room := self.outgoing.room) > 0:
            data = self._unsent.popleft()
            if len(data) > room:
                self._unsent.appendleft(data[room:])
                data = data[:room]
            self._unsent_bytes -= len(data)
            self.outgoing.send(data)
        if self._is_paused and self._unsent_bytes <= LOW_WATER and not self._is_ended:
            self._is_paused = False
            self._loop.arrive(self._protocol.resume_writing)
        if self._is_closing and not self._unsent:
            self._send_end()
            self._end(None)

    def _send_end(self) -> None:
        if not self._has_sent_end:
            self._has_sent_end = True
            self.outgoing.send(END)

    def fail(self, number: int) -> None:
        """The connection is of no use any more, which the process is told."""
        self._kill_streams()
        error: OSError = OSError(number, os.strerror(number))
        if number == errno.ECONNRESET:
            error = ConnectionResetError(number, os.strerror(number))
        elif number == errno.ETIMEDOUT:
            error = TimeoutError(number, os.strerror(number))
        self._end(error)

    def process_ended(self) -> None:
        """The process is dead: its machine closes what it had open."""
        self._unsent.clear()
        if self.unread and not self._is_ended:
            self._reset_other_end()
        elif not self._is_ended:
            self._send_end()
        self._is_ended = True

    def _reset_other_end(self) -> None:
        """A reset is sent once; if it is lost, the other end learns when it sends again."""
        network = self._internet.network
        other = self.outgoing._target
        seconds = network.travel(self.machine, other.machine)
        self._internet.world.after(seconds, self._reset_arrives, other)

    def _reset_arrives(self, other: End) -> None:
        if self._internet.network.is_open(self.machine, other.machine) and not other._is_ended:
            other.fail(errno.ECONNRESET)

    def _kill_streams(self) -> None:
        self.outgoing.is_dead = self.incoming.is_dead = True

    def _end(self, error: Exception | None) -> None:
        if not self._is_ended:
            self._is_ended = True
            self._is_closing = True
            self._internet.forget(self)
            if self._protocol is not None:
                self._loop.arrive(partial(self._protocol.connection_lost, error))

    # What the process does.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_closing or self._is_ended or not data:
            return
        self._unsent.append(bytes(data))
        self._unsent_bytes += len(data)
        self.pump()
        if self._unsent_bytes > HIGH_WATER and not self._is_paused:
            self._is_paused = True
            self._protocol.pause_writing()

    def get_write_buffer_size(self) -> int:
        return self._unsent_bytes

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self.pump()

    def abort(self) -> None:
        if not self._is_ended:
            self._unsent.clear()
            self._reset_other_end()
            self.outgoing.is_dead = True
            self._end(None)

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self._read_later()

    def is_reading(self) -> bool:
        return self._is_reading

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "socket":
            return self.socket
        if name == "peername":
            return self._remote
        return default


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


class Internet:
    """All connections, and who listens where."""

    def __init__(self, world: World, network: Network) -> None:
        self.world = world
        self.network = network
        self._listeners: dict[tuple[str, int], Listener] = {}
        self._ends: dict[End, None] = {}
        self._ports_used = 50_000

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
        network, machine, host = self.network, local[0], remote[0]
        there = network.travel(machine, host)
        back = network.travel(host, machine)
        if network.is_open(machine, host) and network.is_open(host, machine):
            self.world.after(there, self._dialled, loop, dialled, local, remote, back)
        else:
            self.world.after(pause, self._dial, loop, dialled, local, remote, 2 * pause)

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
            self.world.after(back, self._tell, loop, dialled, None)
            return
        here = End(loop, self, local, remote)
        there = End(listener.loop, self, remote, local)
        here.outgoing = there.incoming = Stream(self.world, self.network, here, there)
        here.incoming = there.outgoing = Stream(self.world, self.network, there, here)
        self._ends[here] = self._ends[there] = None
        listener.loop.arrive(lambda: there.made(listener.factory()))
        self.world.after(back, self._tell, loop, dialled, (here, there))

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

    def forget(self, end: End) -> None:
        self._ends.pop(end, None)

    def process_ended(self, loop: Process) -> None:
        for where, listener in list(self._listeners.items()):
            if listener.loop is loop:
                del self._listeners[where]
        for end in list(self._ends):
            if end._loop is loop:
                del self._ends[end]
                end.process_ended()
