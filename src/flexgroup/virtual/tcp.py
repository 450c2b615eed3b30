"""A model of TCP: what processes notice of it, without its packets.

Each direction of a connection is a stream of bytes that arrive in order. While a way is cut,
what is under way waits and is sent again after pauses that double, so that a connection survives
a short cut and tells of a long one late. A process that ends has its connections closed by its
machine; a machine that cannot be reached tells nothing.
"""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, final

from flexgroup.virtual.loop import VirtualLoop
from flexgroup.virtual.network import Network, Way
from flexgroup.virtual.world import World

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 120.0
"""How long a sender waits before it sends again what was not confirmed: at first, at the most."""

WINDOW = 256 << 10
"""The bytes that the machines hold for a direction, under way or not read yet."""

HIGH_WATER = 64 << 10
LOW_WATER = 16 << 10
"""A process is asked to pause, and to go on, when so many bytes are held for it by its loop."""

END = b""
"""Stands in a stream for its end."""


@final
class VirtualSocket:
    """The little that is asked of a socket beside its connection."""

    def __init__(self, host: str, port: int) -> None:
        self.family = socket.AF_INET
        self._name = host, port
        self.user_timeout = float("inf")
        """How many seconds what was sent may stay unconfirmed before the connection is given up."""
        self.keep_idle = float("inf")
        self.keep_interval = float("inf")
        """After how many seconds without a word the other machine is asked whether it still knows
        the connection, and how often then."""

    def fileno(self) -> int:
        return -1  # as of a socket that is closed: there is no file to write to

    def getsockname(self) -> tuple[str, int]:
        return self._name

    def setsockopt(self, level: int, option: int, value: int) -> None:
        if level != socket.IPPROTO_TCP:
            return
        if option == socket.TCP_USER_TIMEOUT:
            self.user_timeout = value / 1000
        elif option == socket.TCP_KEEPIDLE:
            self.keep_idle = float(value)
        elif option == socket.TCP_KEEPINTVL:
            self.keep_interval = float(value)


@final
class Stream:
    """One direction of a connection."""

    def __init__(self, world: World, network: Network, source: End, target: End) -> None:
        self._world = world
        self._there = network.way(source.machine, target.machine)
        self._back = network.way(target.machine, source.machine)
        self._source = source
        self.target = target
        self._arrives = 0.0
        """When the last of what was sent arrives: nothing overtakes it."""
        self._lost: deque[bytes] = deque()
        """What did not get through, and what came behind it, until it is sent again."""
        self._unconfirmed = 0
        self._unconfirmed_since = 0.0
        self._confirmations: deque[tuple[float, int]] = deque()
        """Those that nobody waits for: when they come, and how much each confirms."""
        self._pause = FIRST_PAUSE
        self._is_repeating = False
        self.is_dead = False
        """One of the ends was reset: nothing passes any more."""

    @property
    def is_cut(self) -> bool:
        return self._there.is_cut

    @property
    def room(self) -> int:
        self._look_at_confirmations()
        return WINDOW - self._unconfirmed - self.target.unread

    def send(self, data: bytes) -> None:
        self._look_at_confirmations()
        if not self._unconfirmed:
            self._unconfirmed_since = self._world.now
        self._unconfirmed += len(data) or 1
        if self._lost:
            self._lost.append(data)
        else:
            self._transmit(data)

    def _transmit(self, data: bytes) -> None:
        self._arrives = max(self._arrives, self._world.now + self._there.carry(len(data)))
        self._world.at(self._arrives, self._arrive, data)

    def _arrive(self, data: bytes) -> None:
        if self.is_dead:
            return
        if self._lost or self._there.is_cut:
            self._lost.append(data)
            self._repeat_later()
            return
        self._pause = FIRST_PAUSE
        self.target.take(data)
        self._confirm(len(data) or 1)

    def _confirm(self, size: int) -> None:
        """Tell the sender that so much has arrived, and how much room there is for more.

        Most of the time nobody waits for it, and nothing need happen when it comes.
        """
        if self._back.is_cut or self._source.has_unsent:
            self._world.after(self._back.travel(), self._confirmed, size, FIRST_PAUSE)
        else:
            self._confirmations.append((self._world.now + self._back.least, size))

    def was_read(self) -> None:
        """There is more room again."""
        if self._source.has_unsent:
            self._confirm(0)

    def _look_at_confirmations(self) -> None:
        confirmations = self._confirmations
        while confirmations:
            when, size = confirmations[0]
            if when > self._world.now:
                return
            confirmations.popleft()
            self._unconfirmed -= size
            self._unconfirmed_since = when

    def wait_for_confirmations(self) -> None:
        """Let those that are under way be events: somebody waits for them, or they may be lost."""
        self._look_at_confirmations()
        for when, size in self._confirmations:
            self._world.at(when, self._confirmed, size, FIRST_PAUSE)
        self._confirmations.clear()

    def _confirmed(self, size: int, pause: float) -> None:
        if self.is_dead:
            return
        if self._back.is_cut:
            if not self._gives_up():
                next_pause = min(2 * pause, LONGEST_PAUSE)
                self._world.after(self._at_most(pause), self._confirmed, size, next_pause)
            return
        self._unconfirmed -= size
        self._unconfirmed_since = self._world.now
        self._source.pump()

    def _repeat_later(self) -> None:
        if not self._is_repeating:
            self._is_repeating = True
            self._world.after(self._at_most(self._pause), self._repeat)
            self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _repeat(self) -> None:
        self._is_repeating = False
        if self.is_dead or self._gives_up():
            return
        if self._there.is_cut:
            self._repeat_later()
            return
        lost, self._lost = self._lost, deque()
        for data in lost:
            self._transmit(data)

    def _at_most(self, pause: float) -> float:
        """A pause that ends no later than the connection is given up."""
        given_up = self._unconfirmed_since + self._source.socket.user_timeout
        return min(pause, max(0.0, given_up - self._world.now))

    def _gives_up(self) -> bool:
        self._look_at_confirmations()
        if self._world.now < self._unconfirmed_since + self._source.socket.user_timeout:
            return False
        self._source.time_out()
        return True


@final
class End:
    """One end of a connection, as its process sees it.

    It has the methods of an asyncio transport, but is none, as for `VirtualLoop`.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        world: World,
        network: Network,
        local: tuple[str, int],
        remote: tuple[str, int],
        when_ended: Callable[[End], None],
    ) -> None:
        self.machine = loop.machine
        self.socket = VirtualSocket(*local)
        self.outgoing: Stream
        self.incoming: Stream
        self.loop = loop
        self._world = world
        self._network = network
        self._remote = remote
        self._when_ended = when_ended
        self._protocol: Any = None
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._unread: deque[bytes] = deque()
        self.unread = 0
        self._is_read_due = False
        self._is_reading = True
        self._is_paused = False
        self._high_water, self._low_water = HIGH_WATER, LOW_WATER
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
        if self._is_ended or self.loop.is_dead:
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
            self.loop.arrive(self._read)

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
            self.incoming.was_read()
            if not self._is_closing:
                self._protocol.data_received(data)
        if self._unread and self._unread[0] is END and not self._is_ended:
            self._unread.popleft()
            if not self._protocol.eof_received():
                self.close()

    @property
    def has_unsent(self) -> bool:
        """Something waits for room."""
        return bool(self._unsent)

    def pump(self) -> None:
        """Send what the machines have room for."""
        while self._unsent:
            room = self.outgoing.room
            if room <= 0:
                self.outgoing.wait_for_confirmations()
                break
            data = self._unsent.popleft()
            if len(data) > room:
                self._unsent.appendleft(data[room:])
                data = data[:room]
            self._unsent_bytes -= len(data)
            self.outgoing.send(data)
        if self._is_paused and self._unsent_bytes <= self._low_water and not self._is_ended:
            self._is_paused = False
            self.loop.arrive(self._protocol.resume_writing)
        if self._is_closing and not self._unsent:
            self._send_end()
            self._end(None)

    def _send_end(self) -> None:
        if not self._has_sent_end:
            self._has_sent_end = True
            self.outgoing.send(END)

    def _was_reset(self) -> None:
        """The other machine says that it does not know the connection."""
        self._kill_streams()
        number = errno.ECONNRESET
        self._end(ConnectionResetError(number, os.strerror(number)))

    def time_out(self) -> None:
        """The connection is given up here, and the other end is not told. It learns of it when it
        sends something, or asks whether this end is still there."""
        self.outgoing.is_dead = True
        number = errno.ETIMEDOUT
        self._end(TimeoutError(number, os.strerror(number)))
        self.outgoing.target.ask_when_idle()

    def ask_when_idle(self) -> None:
        """The other end is gone, which is noticed in time if nothing is sent. (As long as both ends
        are there, what is asked and answered makes no difference.)"""
        now = self._world.now
        self._ask_later(self.socket.keep_idle, now + self.socket.user_timeout)

    def _ask_later(self, seconds: float, gives_up: float) -> None:
        if seconds < float("inf"):
            self._world.after(seconds, self._ask, gives_up)

    def _ask(self, gives_up: float) -> None:
        """Ask the other machine, which has nothing of the connection any more."""
        if self._is_ended or self.loop.is_dead:
            return
        if not (self.outgoing.is_cut or self.incoming.is_cut):
            self._was_reset()
        elif self._world.now >= gives_up:
            self.time_out()
        else:
            self._ask_later(self.socket.keep_interval, gives_up)

    def process_ended(self) -> None:
        """The process is dead: its machine closes what it had open."""
        self._unsent.clear()
        if self.unread and not self._is_ended:
            self._reset_other_end()
        elif not self._is_ended:
            self._send_end()
        self._is_ended = True

    def _reset_other_end(self) -> None:
        """A reset is sent once; if it is lost, the other end learns when it sends again, or asks
        whether this end is still there."""
        other = self.outgoing.target
        way = self._network.way(self.machine, other.machine)
        self._world.after(way.travel(), self._reset_arrives, way, other)

    def _reset_arrives(self, way: Way, other: End) -> None:
        if way.is_cut:
            other.ask_when_idle()
        elif not other._is_ended:
            other._was_reset()

    def _kill_streams(self) -> None:
        self.outgoing.is_dead = self.incoming.is_dead = True

    def _end(self, error: Exception | None) -> None:
        if not self._is_ended:
            self._is_ended = True
            self._is_closing = True
            self._when_ended(self)
            if self._protocol is not None:
                self.loop.arrive(partial(self._protocol.connection_lost, error))

    # What the process does.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_closing or self._is_ended or not data:
            return
        if not self._unsent and len(data) <= self.outgoing.room:
            self.outgoing.send(bytes(data))
            return
        self._unsent.append(bytes(data))
        self._unsent_bytes += len(data)
        self.pump()
        if self._unsent_bytes > self._high_water and not self._is_paused:
            self._is_paused = True
            self._protocol.pause_writing()

    def set_write_buffer_limits(self, high: int) -> None:
        self._high_water, self._low_water = high, high // 4

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
