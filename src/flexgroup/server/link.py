"""A link between two servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

import msgspec

from flexgroup.core.codec import varints
from flexgroup.core.errors import PeerError
from flexgroup.membership.messages import AnyControl, ControlMessage
from flexgroup.server.connection import Connection
from flexgroup.server.introduction import decode_welcome
from flexgroup.wire.frames import MOST_BYTES_OF_SERVERS
from flexgroup.worlds.network.envelope import read_varint

if TYPE_CHECKING:
    from flexgroup.server.peers import Peers

CONTROL: Final = 0
PACKETS: Final = 1
COUNTS: Final = 2

_CONTROL_HEAD: Final = bytes([CONTROL])
_control_decoder = msgspec.msgpack.Decoder(AnyControl)
_encoder = msgspec.msgpack.Encoder()


def head_of(kind: int, configuration: int, domain: int) -> bytes:
    """How a frame for a domain begins."""
    return varints([kind, configuration, domain])


@final
class Link:
    """One end of a connection between two servers, once it is known to be one."""

    def __init__(
        self,
        connection: Connection,
        peers: Peers,
        number: int,
        name: str,
        address: str,
        server: int | None,
        opened_here: bool,
    ) -> None:
        self.connection = connection
        self.number = number
        """Among all links that this server ever had."""
        self.name = name
        self.address = address
        self.server = server
        """The number of the server at the other end; None: not a member yet."""
        self.opened_here = opened_here
        self.ready = not opened_here
        self._peers = peers
        self._before_ready: list[tuple[bytes, bytes | bytearray]] = []
        self.gathered: list[tuple[bytes, bytes | bytearray]] = []
        """What goes out with the next `flush`: heads and what follows them."""
        self.heard = False
        """Since membership was last told so."""
        connection.reader.allow(MOST_BYTES_OF_SERVERS)
        connection.writer.allow(MOST_BYTES_OF_SERVERS)

    def frame(self, content: bytes) -> None:
        if not self.ready:
            welcome = decode_welcome(content)
            self.connection.writer.begin_at(welcome.session)
            self.ready = True
            self._peers.welcomed(self, welcome)
            waiting, self._before_ready = self._before_ready, []
            self.connection.send_all(waiting)
            return
        if not content:
            raise PeerError("an empty frame from a server")
        self.heard = True
        kind = content[0]
        if kind == CONTROL:
            try:
                message = _control_decoder.decode(memoryview(content)[1:])
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise PeerError(f"a malformed message of a server: {error}") from None
            self._peers.controlled(self, message)
        elif kind <= COUNTS:
            configuration, at = read_varint(content, 1)
            domain, at = read_varint(content, at)
            self._peers.came(self, kind, configuration, domain, content, at)
        else:
            raise PeerError(f"a frame of kind {kind} from a server; kinds are 0 to 2")

    def lost(self, error: Exception | None) -> None:
        self._peers.link_closed(self)

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
