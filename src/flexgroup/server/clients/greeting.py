"""How the session of a client begins: with one Hello, and the server's Welcome."""

from __future__ import annotations

from typing import NoReturn

import msgspec

from flexgroup.core.errors import PeerError
from flexgroup.server.clients.session import Session, SessionContext, decode_requests
from flexgroup.server.connection import Connection
from flexgroup.server.settings import ServerIdentity, Settings
from flexgroup.wire import refusals, requests
from flexgroup.wire.frames import array_of
from flexgroup.wire.keepalive import keep_alive


class Greeting:
    """Welcomes clients, or tells them why not."""

    def __init__(
        self,
        settings: Settings,
        identity: ServerIdentity,
        sessions: dict[int, Session],
        context: SessionContext,
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._sessions = sessions
        self._context = context
        self._clients_ever = 0
        self.is_closing = False
        """The server is shutting down, and welcomes nobody any more."""

    def count_from(self, client: int) -> None:
        """Number clients from here on."""
        self._clients_ever = client - 1

    def greet(self, connection: Connection, content: bytes) -> Session:
        asked = decode_requests(content)
        if len(asked) != 1 or not isinstance(asked[0], requests.Hello):
            raise PeerError("the first frame of a client is one Hello")
        name = asked[0].name
        self._check(connection, asked[0])
        limits = self._settings.limits
        keep_alive(connection.transport, limits.gone_seconds)
        self._clients_ever += 1
        session = Session(self._clients_ever, name, connection, self._context)
        self._sessions[session.number] = session
        number = self._settings.random.getrandbits(32)
        connection.reader.begin_at(number)
        session.say(
            requests.Welcome(
                self._identity.name, number, limits.window, limits.largest_message, limits.sends
            )
        )
        return session

    def _check(self, connection: Connection, hello: requests.Hello) -> None:
        most = self._settings.limits.clients
        if hello.version != requests.VERSION:
            reason = f"a client that speaks version {hello.version}, not {requests.VERSION}"
            _turn_away(connection, refusals.BAD_VERSION, reason)
        if self.is_closing:
            _turn_away(connection, refusals.CLOSING, "the server is shutting down")
        if len(self._sessions) >= most:
            _turn_away(connection, refusals.TOO_MANY, f"too many clients: at most {most}")
        try:
            self._settings.check_certificate(connection.transport, hello.name)
        except PeerError as error:
            _turn_away(connection, refusals.NOT_ALLOWED, str(error))


def _turn_away(connection: Connection, code: str, reason: str) -> NoReturn:
    """Tell a client why, before the connection is closed."""
    refused = msgspec.msgpack.encode(requests.Refused(None, code, reason))
    connection.send(array_of([refused]))
    raise PeerError(reason)
