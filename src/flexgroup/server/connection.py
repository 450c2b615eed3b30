"""A connection to a server: from bytes to frames, until it is known who is at the other end.

Clients, other servers and collectors of metrics all come in at one port. The first bytes tell
which it is.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol, cast, final

from flexgroup.core.errors import PeerError
from flexgroup.wire.frames import FrameReader, FrameWriter
from flexgroup.wire.socket_writer import SocketWriter

FIRST_FRAME_BYTES = 64 << 10
"""The most that somebody unknown may say."""

WEB: Final = (b"GET ", b"HEAD", b"POST", b"PUT ", b"PATC", b"DELE", b"OPTI")
"""How a web request begins; no frame is as long as these four bytes would mean."""


class FrameHandler(Protocol):
    """Takes the frames of a connection, once it is known who is at the other end."""

    def frame(self, content: bytes) -> None: ...

    def lost(self, error: Exception | None) -> None: ...

    def resumed(self) -> None:
        """The other end takes data again after it had stopped."""


class ConnectionEvents(Protocol):
    """What a connection tells of, and who decides what a new one is."""

    def opened(self, connection: Connection) -> None: ...

    def first_frame(self, connection: Connection, content: bytes) -> FrameHandler:
        """Who takes the frames that follow; PeerError for what nobody should begin with."""

    def web_page(self, method: str, path: str) -> tuple[str, str, bytes]:
        """The status, type and content for a collector of metrics or a person with a browser."""

    def refused(self, connection: Connection, reason: str) -> None: ...

    def failed(self, connection: Connection) -> None:
        """An error of this server's own, being handled."""

    def closed(self, connection: Connection) -> None: ...


@final
class Connection:
    """One end of a connection.

    It has the methods of an asyncio protocol, but is none: a base class that is not compiled
    would make every call slow.
    """

    def __init__(self, events: ConnectionEvents) -> None:
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
        self._events = events
        self._transport: asyncio.Transport | None = None
        self._socket_writer: SocketWriter | None = None
        self._http: bytearray | None = None
        self._begun = False
        self._closing = False

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    @property
    def socket_writer(self) -> SocketWriter:
        assert self._socket_writer is not None
        return self._socket_writer

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def where(self) -> str:
        """The address of the other end, for people."""
        if self._transport is None:
            return "nowhere"
        peer = self._transport.get_extra_info("peername")
        return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "a local socket"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._socket_writer = SocketWriter(self._transport)
        self._events.opened(self)

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
                    self.handler = self._events.first_frame(self, content)
                else:
                    self.handler.frame(content)
        except PeerError as error:
            self._refuse(str(error))
        except Exception:
            # Left to the event loop, an OSError of ours would pass for one of the connection.
            self._events.failed(self)
            self.abort()

    def _refuse(self, reason: str) -> None:
        self.refusal = reason
        self._events.refused(self, reason)
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
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once, whatever is still to be sent."""
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

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
        self._events.closed(self)
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
            status, kind, content = self._events.web_page(method, rest.partition(" ")[0])
            head = (
                f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nAllow: GET, HEAD\r\n"
                f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
            )
            self.socket_writer.write(head.encode() + (b"" if method == "HEAD" else content))
            self.close()


def protocol_of(connection: Connection) -> asyncio.Protocol:
    """The connection, as asyncio sees it."""
    return cast(asyncio.Protocol, connection)
