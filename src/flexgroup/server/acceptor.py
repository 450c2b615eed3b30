"""Accepts connections: one port for everybody, and a local socket for clients if wanted.

Whoever connects has a moment to say who it is. What is refused is counted by its kind, so that
metrics and `flexgroup probe` can tell.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Protocol

from flexgroup.core.errors import UsageError
from flexgroup.server.connection import Connection, FrameHandler, protocol_of
from flexgroup.server.settings import Settings
from flexgroup.wire.address import Address

log = logging.getLogger("flexgroup.server")

MOST_KINDS_OF_REFUSALS = 100


class AcceptorHost(Protocol):
    """Decides what becomes of connections."""

    def greet(self, connection: Connection, content: bytes) -> FrameHandler:
        """Find out from the first frame who it is; PeerError if nobody should begin so."""

    def metrics_page(self) -> bytes: ...

    def connection_ended(self, connection: Connection) -> None: ...


class Acceptor:
    """It is told how connections fare, also of those that this server opens."""

    def __init__(self, settings: Settings, host: AcceptorHost) -> None:
        self._settings = settings
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._listeners: list[asyncio.Server] = []
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
        return protocol_of(Connection(self))

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
        self._host.connection_ended(connection)

    def refused(self, connection: Connection, reason: str) -> None:
        kind = reason.split(":")[0].split(";")[0][:40]
        kind = " ".join("".join(c for c in kind if not c.isdigit()).split())
        if len(self.refusals) >= MOST_KINDS_OF_REFUSALS and kind not in self.refusals:
            kind = "other"  # reasons may quote what strangers say
        self.refusals[kind] = self.refusals.get(kind, 0) + 1
        log.warning("refused", extra={"data": {"from": connection.where(), "reason": reason}})
        # It is going to be closed, which takes for ever if the other end reads nothing more.
        self._loop.call_later(self._settings.limits.silent_seconds, connection.abort)

    def failed(self, connection: Connection) -> None:
        log.exception("internal error", extra={"data": {"from": connection.where()}})

    def first_frame(self, connection: Connection, content: bytes) -> FrameHandler:
        handler = self._host.greet(connection, content)
        self._strangers.pop(connection, None)
        return handler

    def web_page(self, method: str, path: str) -> tuple[str, str, bytes]:
        if method not in ("GET", "HEAD"):
            return "405 Method Not Allowed", "text/plain", b"Pages here can only be read.\n"
        if path.partition("?")[0] == "/metrics":
            kind = "text/plain; version=0.0.4; charset=utf-8"
            return "200 OK", kind, self._host.metrics_page()
        return "404 Not Found", "text/plain", b"There is /metrics here, and nothing else.\n"
