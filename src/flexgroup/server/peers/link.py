"""A link: one end of a connection between two servers."""

from __future__ import annotations

from typing import Final, Protocol, final

import msgspec

from flexgroup.core.errors import PeerError
from flexgroup.core.varints import Reader, varints
from flexgroup.membership.messages import AnyControl, ControlMessage
from flexgroup.server.connection import Connection
from flexgroup.server.peers.introduction import PeerWelcome, decode_welcome
from flexgroup.wire.decoding import decoded
from flexgroup.wire.frames import MOST_BYTES_OF_SERVERS

CONTROL: Final = 0
PACKETS: Final = 1
COUNTS: Final = 2

_CONTROL_HEAD: Final = bytes([CONTROL])
_control_decoder = msgspec.msgpack.Decoder(AnyControl)
_encoder = msgspec.msgpack.Encoder()


def head_of(kind: int, configuration: int, domain: int) -> bytes:
    """How a frame for a domain begins."""
    return varints([kind, configuration, domain])


class Packets(Protocol):
    """Takes what servers send for the domains."""

    def came(
        self, kind: int, server: int, configuration: int, domain: int, data: bytes, at: int
    ) -> None:
        """Packets or counts, from this place in the data on."""


class LinkEvents(Protocol):
    """The events that a link reports to its server."""

    packets: Packets

    def welcomed(self, link: PeerLink, welcome: PeerWelcome) -> None: ...

    def controlled(self, link: PeerLink, message: ControlMessage) -> None:
        """A message about membership has come."""

    def link_closed(self, link: PeerLink) -> None: ...


@final
class PeerLink:
    def __init__(
        self, connection: Connection, number: int, opened_here: bool, events: LinkEvents
    ) -> None:
        self.connection = connection
        self.number = number
        """The number of the link among all that this server ever had."""
        self.opened_here = opened_here
        self.address = ""
        """Where the server at the other end is reached by others."""
        self.server: int | None = None
        """The number of the server at the other end; None: it is no member yet."""
        self.ready = not opened_here
        self._events = events
        self._before_ready: list[tuple[bytes, bytes | bytearray]] = []
        self.gathered: list[tuple[bytes, bytes | bytearray]] = []
        """What goes out with the next `flush`: heads and what follows them."""
        self.heard = False
        """Something has come since membership was last told so."""
        connection.reader.allow(MOST_BYTES_OF_SERVERS)
        connection.writer.allow(MOST_BYTES_OF_SERVERS)

    def frame(self, content: bytes) -> None:
        if not self.ready:
            welcome = decode_welcome(content)
            self.connection.writer.begin_at(welcome.session)
            self.ready = True
            self._events.welcomed(self, welcome)
            waiting, self._before_ready = self._before_ready, []
            self.connection.send_all(waiting)
            return
        if not content:
            raise PeerError("a server sent an empty frame")
        self.heard = True
        kind = content[0]
        if kind == CONTROL:
            data = memoryview(content)[1:]
            message = decoded(_control_decoder, data, "a malformed message of a server")
            self._events.controlled(self, message)
        elif kind <= COUNTS:
            reader = Reader(content, 1, len(content))
            configuration = reader.varint()
            domain = reader.varint()
            if self.server is not None:
                self._events.packets.came(
                    kind, self.server, configuration, domain, content, reader.position
                )
        else:
            raise PeerError(f"a frame of kind {kind} from a server; kinds are 0 to 2")

    def lost(self, error: Exception | None) -> None:
        self._events.link_closed(self)

    def resumed(self) -> None:
        pass

    def say(self, message: ControlMessage) -> None:
        self.gathered.append((_CONTROL_HEAD, _encoder.encode(message)))
        self.flush()

    def flush(self) -> None:
        gathered, self.gathered = self.gathered, []
        if self.ready:
            self.connection.send_all(gathered)
        else:
            self._before_ready += gathered
