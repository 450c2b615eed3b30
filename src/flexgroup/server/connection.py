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
from collections.abc import Callable
from typing import Any, Final, Protocol, cast, final

from flexgroup.core.errors import PeerError, UsageError
from flexgroup.server.settings import Settings
from flexgroup.wire.address import Address
from flexgroup.wire.frames import FrameReader, FrameWriter
from flexgroup.wire.socket_writer import SocketWriter

log = logging.getLogger("flexgroup.server")

FIRST_FRAME_BYTES = 64 << 10
"""The most that somebody unknown may say."""

MOST_KINDS_OF_REFUSALS = 100

WEB: Final = (b"GET ", b"HEAD", b"POST", b"PUT ", b"PATC", b"DELE", b"OPTI")
"""How a web request begins; no frame is as long as these four bytes would mean."""


class FrameHandler(Protocol):
    """Takes the frames of a connection, once it is known who is at the other end."""

    def frame(self, content: bytes) -> None: ...

    def lost(self, error: Exception | None) -> None: ...

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

    def __init__(self, acceptor: Acceptor) -> None:
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
        self._acceptor = acceptor
        self._http: bytearray | None = None
        self._begun = False
        self._closing = False

    @property
    def is_open(self) -> bool:
        return not self.transport.is_closing()

    def where(self) -> str:
        """The address of the other end, for people."""
        peer = self.transport.get_extra_info("peername")
        return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "a local socket"

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
        try:
            self.reader.feed(data)
            while not self._closing and (content := self.reader.next_frame()) is not None:
                self.frames_in += 1
                if self.handler is None:
                    self.handler = self._acceptor.first_frame(self, content)
                else:
                    self.handler.frame(content)
        except PeerError as error:
            self._refuse(str(error))
        except Exception:
            # Left to the event loop, an OSError of ours would pass for one of the connection.
            log.exception("internal error", extra={"data": {"from": self.where()}})
            self.abort()

    def _refuse(self, reason: str) -> None:
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
            self._refuse("a web request without end")
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
        self._strangers: dict[Connection, None] = {}
        """Connections that have not said who they are, the oldest first."""
        self.refusals: dict[str, int] = {}
        """How often something was refused, by what it was."""

    async def listen(self) -> Address:
        """The address of the port, which may have been any that is free."""
        settings = self._settings
        where = str(Address(settings.host, settings.port))
        try:
            self._listeners.append(
                await self._loop.create_server(
                    self._new_connection,
                    settings.host,
                    settings.port,
                    ssl=settings.tls_server,
                    ssl_handshake_timeout=settings.limits.silent_seconds
                    if settings.tls_server
                    else None,
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
        for connection in list(self.connections):
            connection.close()

    def _new_connection(self) -> asyncio.Protocol:
        return cast(asyncio.Protocol, Connection(self))

    # What connections tell of.

    def opened(self, connection: Connection) -> None:
        self.connections[connection] = None
        limits = self._settings.limits
        if len(self._strangers) >= limits.strangers:
            # Whoever means well says at once who it is.
            self._abort_if_unknown(next(iter(self._strangers)))
        self._strangers[connection] = None
        self._loop.call_later(limits.silent_seconds, self._abort_if_unknown, connection)

    def _abort_if_unknown(self, connection: Connection) -> None:
        """This ends also a connection that was closed here, if the other end takes nothing more."""
        if self._strangers.pop(connection, True) is None and connection.handler is None:
            self.refused(connection, "silent: it never said who it was")
            connection.abort()

    def closed(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        self._strangers.pop(connection, None)
        self._ended(connection)

    def refused(self, connection: Connection, reason: str) -> None:
        kind = reason.split(":")[0].split(";")[0][:40]
        kind = " ".join("".join(c for c in kind if not c.isdigit()).split())
        if len(self.refusals) >= MOST_KINDS_OF_REFUSALS and kind not in self.refusals:
            kind = "other"  # reasons may quote what strangers say
        self.refusals[kind] = self.refusals.get(kind, 0) + 1
        log.warning("refused", extra={"data": {"from": connection.where(), "reason": reason}})
        # It is going to be closed, which takes for ever if the other end reads nothing more.
        self._loop.call_later(self._settings.limits.silent_seconds, connection.abort)

    def first_frame(self, connection: Connection, content: bytes) -> FrameHandler:
        """Return who takes the frames that follow."""
        handler = self._greet(connection, content)
        self._strangers.pop(connection, None)
        return handler

    def web_page(self, method: str, path: str) -> tuple[str, str, bytes]:
        """The status, type and content for a collector of metrics or a person with a browser."""
        if method not in ("GET", "HEAD"):
            return "405 Method Not Allowed", "text/plain", b"Pages here can only be read.\n"
        if path.partition("?")[0] == "/metrics":
            kind = "text/plain; version=0.0.4; charset=utf-8"
            return "200 OK", kind, self._metrics_page()
        return "404 Not Found", "text/plain", b"There is /metrics here, and nothing else.\n"
