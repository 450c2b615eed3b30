"""Connections to a server: from bytes to frames, until it is known who is at the other end.

Clients, other servers and collectors of metrics all come in at one port, and clients of the same
machine at a local socket, too, if that is wanted. The first bytes tell which it is. Whoever
connects has a moment to say who it is. What is refused is counted by its kind, so that metrics and
`flexgroup probe` can tell.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, cast, final

from flexgroup.core.errors import PeerError, UsageError
from flexgroup.server.settings import Settings
from flexgroup.wire.address import Address
from flexgroup.wire.frames import FrameReader, FrameWriter
from flexgroup.wire.socket_writer import SocketWriter

log = logging.getLogger("flexgroup.server")

FIRST_FRAME_BYTES = 64 << 10
"""The most that somebody unknown may say."""

MOST_KINDS_OF_REFUSALS = 100

LOGGED_IN_A_SECOND = 10
"""Refusals of one kind that are logged each for itself; of the others, only how many."""

WEB: Final = (b"GET ", b"HEAD", b"POST", b"PUT ", b"PATC", b"DELE", b"OPTI")
"""How a web request begins; no frame is as long as these four bytes would mean."""


class FrameHandler(ABC):
    """Takes the frames of a connection, once it is known who is at the other end.

    A base class and no protocol, since compiled code calls its methods several times as fast.
    """

    @abstractmethod
    def frame(self, content: bytes) -> None: ...

    @abstractmethod
    def lost(self, error: Exception | None) -> None: ...

    @abstractmethod
    def resumed(self) -> None:
        """The other end takes data again after it had stopped."""


@final
class Connection:
    """One end of a connection.

    It has the methods of an asyncio protocol, but is none: a base class that is not compiled
    would make every call slow.
    """

    transport: asyncio.Transport
    """It is there before anybody else knows of the connection."""
    socket_writer: SocketWriter

    def __init__(self, acceptor: Acceptor, handshake: Handshake | None = None) -> None:
        self.handshake = handshake
        """What came before, with TLS, at the end that was connected to."""
        self.reader = FrameReader(FIRST_FRAME_BYTES)
        self.writer = FrameWriter()
        self.handler: FrameHandler | None = None
        self.refusal = ""
        """Why the connection was closed here, if it was refused."""
        self.writable = True
        """Whether the other end takes what is sent."""
        self.bytes_in = 0
        self.bytes_out = 0
        self.frames_in = 0
        self.frames_out = 0
        self.deadline: asyncio.TimerHandle | None = None
        """When the connection is closed, unless something has happened by then."""
        self.held = 0
        """Bytes that have come of a frame that is not complete yet."""
        self.is_of_server = False
        """It leads to a server of the cluster, whose frames may be large."""
        self.is_paused = False
        self._acceptor = acceptor
        self._http: bytearray | None = None
        self._begun = False
        self._closing = False

    @property
    def is_open(self) -> bool:
        return not self.transport.is_closing()

    def where(self) -> str:
        return where(self.transport)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.socket_writer = SocketWriter(self.transport)
        self._acceptor.opened(self)

    def data_received(self, data: bytes) -> None:
        self.bytes_in += len(data)
        if not self._begun and self.handler is None:
            self._begun = True
            if any(data[:4] == method[: len(data)] for method in WEB):
                self._http = bytearray()
        if self._http is not None:
            self._answer_http(data)
            return
        self.reader.feed(data)
        if not self.is_paused:
            try:
                self._read_frames()
            except Exception as error:  # as in `attempt`, which this is too frequent for
                self._failed(error)
        if not self.is_of_server:
            self._tell_held()

    def _tell_held(self) -> None:
        held = self.reader.waiting
        if held != self.held and not self._closing:
            self._acceptor.holds(self, held)

    def _read_frames(self) -> None:
        while (
            not (self._closing or self.is_paused)
            and (content := self.reader.next_frame()) is not None
        ):
            self.frames_in += 1
            if self.handler is None:
                self.handler = self._acceptor.first_frame(self, content)
            else:
                self.handler.frame(content)

    def attempt(self, work: Callable[[], None]) -> None:
        """Do what frames ask for; if they ask for what nobody should, the connection ends."""
        try:
            work()
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        if isinstance(error, PeerError):
            self.refuse(str(error))
            return
        # A mistake of ours ends the connection that brought it up, and no others. Left to the
        # event loop, an OSError would pass for one of the connection.
        log.error("internal error", exc_info=error, extra={"data": {"from": self.where()}})
        self.abort()

    def refuse(self, reason: str) -> None:
        """Close the connection, for this reason."""
        self.refusal = reason
        self._acceptor.refused(self, reason)
        self.close()

    def send(self, content: bytes) -> None:
        if self.is_open:
            data = self.writer.frame(content)
            self.bytes_out += len(data)
            self.frames_out += 1
            self.socket_writer.write(data)

    def send_all(self, contents: list[tuple[bytes, bytes | bytearray]]) -> None:
        """Each as a frame, made of two parts, and all at once."""
        if contents and self.is_open:
            parts: list[bytes | bytearray] = []
            for head, rest in contents:
                parts.append(self.writer.header(len(head) + len(rest)))
                parts.append(head)
                parts.append(rest)
            data = b"".join(parts)
            self.bytes_out += len(data)
            self.frames_out += len(contents)
            self.socket_writer.write(data)

    def pause(self) -> None:
        """Read no more frames until `resume`: there is enough to do with those that came."""
        if not self.is_paused and self.is_open:
            self.is_paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        if self.is_paused and self.is_open:
            self.is_paused = False
            self.attempt(self._read_frames)
            self._tell_held()
            if not self.is_paused and self.is_open:
                self.transport.resume_reading()

    def close(self) -> None:
        self._closing = True
        self.transport.close()

    def abort(self) -> None:
        """Close at once, whatever is still to be sent."""
        self._closing = True
        self.transport.abort()

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        if self.handler is not None:
            self.handler.resumed()

    def eof_received(self) -> bool:
        """Let the connection be closed: nothing is sent to an end that says no more."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.socket_writer.close()
        self._acceptor.closed(self)
        if self.handler is not None:
            self.handler.lost(error)

    def _answer_http(self, data: bytes) -> None:
        assert self._http is not None
        self._http += data
        if len(self._http) > FIRST_FRAME_BYTES:
            self.refuse("a web request without end")
        elif b"\r\n\r\n" in self._http:
            request = bytes(self._http).decode("ascii", "replace")
            method, _, rest = request.partition(" ")
            status, kind, content = self._acceptor.web_page(method, rest.partition(" ")[0])
            head = (
                f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nAllow: GET, HEAD\r\n"
                f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
            )
            self.socket_writer.write(head.encode() + (b"" if method == "HEAD" else content))
            self.close()


@final
class Handshake:
    """A connection that has come in, until both ends have shown their certificates.

    Event loops tell of a connection with TLS after that, and let any number of others wait. So
    they are told of TLS only when the connection is known here: it has a file of its own then, and
    this end of it, which reads nothing, is closed.
    """

    socket: socket.socket

    def __init__(self, acceptor: Acceptor, context: ssl.SSLContext) -> None:
        self.deadline: asyncio.TimerHandle | None = None
        self._acceptor = acceptor
        self._context = context
        self._where = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        accepted = cast(asyncio.Transport, transport)
        self._where = where(accepted)
        end = accepted.get_extra_info("socket")
        try:
            self.socket = socket.socket(end.family, end.type, end.proto, os.dup(end.fileno()))
        except OSError as error:
            self._acceptor.count_refusal(self._where, f"system: {error.strerror}")
        else:
            self.socket.setblocking(False)
            self._acceptor.arrived(self)
        accepted.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Only this end was closed."""

    def where(self) -> str:
        return self._where

    async def shake_hands(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        connection = Connection(self._acceptor, self)
        try:
            await loop.connect_accepted_socket(
                lambda: cast(asyncio.Protocol, connection),
                self.socket,
                ssl=self._context,
                ssl_handshake_timeout=seconds,
            )
        except (OSError, EOFError) as error:
            self._acceptor.left(self, f"TLS: {error}")

    def abort(self) -> None:
        """Have the handshake fail."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


Stranger = Connection | Handshake


def where(transport: asyncio.Transport) -> str:
    """The address of the other end, for people."""
    peer = transport.get_extra_info("peername")
    return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "a local socket"


def most_open_files() -> int:
    """How many files, and so connections, the system lets this process have at once."""
    if sys.platform == "win32":
        return 512
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else 1 << 20


@final
class Acceptor:
    """It is told how connections fare, also of those that this server opens.

    `greet` finds out from the first frame who it is, or raises PeerError if nobody should begin so.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        greet: Callable[[Connection, bytes], FrameHandler],
        metrics_page: Callable[[], bytes],
        ended: Callable[[Connection], None],
    ) -> None:
        self._settings = settings
        self._greet = greet
        self._metrics_page = metrics_page
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        # Not declared as asyncio's servers: uvloop's have a list of sockets where those have a
        # tuple, and compiled code insists on what is declared.
        self._listeners: list[Any] = []
        self.connections: dict[Connection, None] = {}
        """All that are open, the oldest first."""
        self._strangers: dict[Stranger, None] = {}
        """Who has not said who it is, or not shown its certificate; the oldest first."""
        # The rest of the open files is for those who have.
        self._most_strangers = min(settings.limits.strangers, max(1, most_open_files() // 4))
        self._handshakes: set[asyncio.Task[None]] = set()
        self._unfinished: dict[Connection, tuple[int, float]] = {}
        """Connections in the middle of a frame: its number on the connection, and since when."""
        self._unfinished_bytes = 0
        self._look_at_unfinished: asyncio.TimerHandle | None = None
        self._logged: dict[str, tuple[int, int]] = {}
        """The second of the last refusal of each kind, and how many there were in it."""
        self.refusals: dict[str, int] = {}
        """How often something was refused, by what it was."""

    async def listen(self) -> Address:
        """The address of the port, which may have been any that is free."""
        settings = self._settings
        where = str(Address(settings.host, settings.port))
        try:
            self._listeners.append(
                await self._loop.create_server(
                    self._new_connection if settings.tls_server is None else self._new_handshake,
                    settings.host,
                    settings.port,
                )
            )
            if settings.unix is not None:
                where = f"unix:{settings.unix}"
                self._listeners.append(
                    await self._loop.create_unix_server(self._new_connection, str(settings.unix))
                )
        except OSError as error:
            for listener in self._listeners:
                listener.close()
            # Event loops put the address into the text once more.
            number = error.errno or 0  # below 0: of the resolver
            reason = os.strerror(number) if number > 0 else error.strerror or error
            raise UsageError(
                f"cannot listen on {where}: {reason}; choose another address or port"
            ) from None
        return Address(settings.host, self._listeners[0].sockets[0].getsockname()[1])

    def close(self) -> None:
        for listener in self._listeners:
            listener.close()
        for task in self._handshakes:
            task.cancel()
        if self._look_at_unfinished is not None:
            self._look_at_unfinished.cancel()
        for connection in list(self.connections):
            connection.close()

    def _new_connection(self) -> asyncio.Protocol:
        return cast(asyncio.Protocol, Connection(self))

    def _new_handshake(self) -> asyncio.Protocol:
        assert self._settings.tls_server is not None
        return cast(asyncio.Protocol, Handshake(self, self._settings.tls_server))

    # What connections tell of.

    def arrived(self, handshake: Handshake) -> None:
        """Somebody has connected, and has still to show a certificate."""
        self._add_stranger(handshake)
        seconds = self._settings.limits.silent_seconds
        task = self._loop.create_task(handshake.shake_hands(self._loop, seconds))
        self._handshakes.add(task)
        task.add_done_callback(self._handshakes.discard)

    def left(self, handshake: Handshake, reason: str) -> None:
        """A handshake is over; there is a reason if it failed."""
        if self._strangers.pop(handshake, True) is None and reason:
            self.count_refusal(handshake.where(), reason)
        self._set_deadline(handshake, None)

    def opened(self, connection: Connection) -> None:
        self.connections[connection] = None
        if connection.handshake is not None:
            self.left(connection.handshake, "")
            connection.handshake = None
        self._add_stranger(connection)

    def _add_stranger(self, stranger: Stranger) -> None:
        if len(self._strangers) >= self._most_strangers:
            # Whoever means well says at once who it is.
            self._abort_if_unknown(next(iter(self._strangers)), "too many strangers")
        self._strangers[stranger] = None
        self._set_deadline(
            stranger, lambda: self._abort_if_unknown(stranger, "it never said who it was")
        )

    def _set_deadline(self, stranger: Stranger, action: Callable[[], None] | None) -> None:
        """Have something done in a while, unless something else has happened by then; a timer
        that is not needed any more is not left to hold on to the connection."""
        if stranger.deadline is not None:
            stranger.deadline.cancel()
        stranger.deadline = (
            self._loop.call_later(self._settings.limits.silent_seconds, action) if action else None
        )

    def _abort_if_unknown(self, stranger: Stranger, reason: str) -> None:
        """This ends also a connection that was closed here, if the other end takes nothing more."""
        if self._strangers.pop(stranger, True) is not None:
            return
        if isinstance(stranger, Handshake) or stranger.handler is None:
            self.count_refusal(stranger.where(), f"silent: {reason}")
            stranger.abort()

    def closed(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        self._strangers.pop(connection, None)
        self._set_deadline(connection, None)
        self.holds(connection, 0)
        self._ended(connection)

    def refused(self, connection: Connection, reason: str) -> None:
        self.count_refusal(connection.where(), reason)
        # It is going to be closed, which takes for ever if the other end reads nothing more.
        self._set_deadline(connection, connection.abort)

    def count_refusal(self, where: str, reason: str) -> None:
        kind = reason.split(":")[0].split(";")[0][:40]
        kind = " ".join("".join(c for c in kind if not c.isdigit()).split())
        if len(self.refusals) >= MOST_KINDS_OF_REFUSALS and kind not in self.refusals:
            kind = "other"  # reasons may quote what strangers say
        self.refusals[kind] = self.refusals.get(kind, 0) + 1
        now = int(self._loop.time())
        second, count = self._logged.get(kind, (now, 0))
        data: dict[str, object] = {"from": where, "reason": reason}
        if second != now:
            if count > LOGGED_IN_A_SECOND:
                data["others"] = count - LOGGED_IN_A_SECOND
            count = 0
        self._logged[kind] = now, count + 1
        if count < LOGGED_IN_A_SECOND:
            log.warning("refused", extra={"data": data})

    # Frames that are not complete.

    def holds(self, connection: Connection, held: int) -> None:
        """So many bytes of an unfinished frame are held for this connection, from now on."""
        self._unfinished_bytes += held - connection.held
        connection.held = held
        if held == 0:
            self._unfinished.pop(connection, None)
            return
        frame, _ = self._unfinished.get(connection, (-1, 0.0))
        if frame != connection.frames_in:
            self._unfinished[connection] = connection.frames_in, self._loop.time()
        if self._unfinished_bytes > self._settings.limits.unfinished_bytes:
            most = max(self._unfinished, key=lambda other: other.held)
            self._give_up(
                most,
                f"unfinished: {most.held} bytes of a frame, and {self._unfinished_bytes} "
                "of all connections, more than this server holds",
            )
        elif self._look_at_unfinished is None:
            self._look_later()

    def _look_later(self) -> None:
        seconds = self._settings.limits.frame_seconds / 4
        self._look_at_unfinished = self._loop.call_later(seconds, self._end_unfinished)

    def _end_unfinished(self) -> None:
        self._look_at_unfinished = None
        seconds = self._settings.limits.frame_seconds
        begun_before = self._loop.time() - seconds
        for connection, (_, since) in list(self._unfinished.items()):
            if since < begun_before and not connection.is_paused:
                self._give_up(connection, f"unfinished: a frame that took over {seconds:g} s")
        if self._unfinished:
            self._look_later()

    def _give_up(self, connection: Connection, reason: str) -> None:
        self.holds(connection, 0)
        connection.refuse(reason)
        connection.abort()

    def first_frame(self, connection: Connection, content: bytes) -> FrameHandler:
        """Return who takes the frames that follow."""
        handler = self._greet(connection, content)
        self._strangers.pop(connection, None)
        self._set_deadline(connection, None)
        return handler

    def web_page(self, method: str, path: str) -> tuple[str, str, bytes]:
        """The status, type and content for a collector of metrics or a person with a browser."""
        if method not in ("GET", "HEAD"):
            return "405 Method Not Allowed", "text/plain", b"Pages here can only be read.\n"
        if path.partition("?")[0] == "/metrics":
            kind = "text/plain; version=0.0.4; charset=utf-8"
            return "200 OK", kind, self._metrics_page()
        return "404 Not Found", "text/plain", b"There is /metrics here, and nothing else.\n"
