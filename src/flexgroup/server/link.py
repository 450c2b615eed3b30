"""A link between two servers."""

from __future__ import annotations

from typing import Protocol

import msgspec

from flexgroup.core.codec import write_varint
from flexgroup.core.errors import PeerError
from flexgroup.server.connection import Connection
from flexgroup.server.control import AnyControl, ControlMessage
from flexgroup.worlds.network.envelope import read_varint
from flexgroup.worlds.network.frames import MOST_BYTES_OF_SERVERS
from flexgroup.worlds.network.requests import Name, Number

VERSION = 1

INTRODUCTION = b"\xc1"
"""Begins the first frame of a server. No frame of a client begins so: MessagePack never does."""

CONTROL = 0
PACKETS = 1
COUNTS = 2


class PeerHello(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The server that opens a link says who it is."""

    version: int
    cluster: Name | None
    """None: a newcomer that does not know it yet."""
    name: Name
    address: Name
    number: Number | None
    protocols: list[Name]
    """That its stacks may name."""


class PeerWelcome(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    version: int
    cluster: Name
    name: Name
    number: Number | None
    session: Number
    """The number of the next frame of the server that opened the link."""
    protocols: list[Name]


_control_decoder = msgspec.msgpack.Decoder(AnyControl)
_hello_decoder = msgspec.msgpack.Decoder(PeerHello)
_welcome_decoder = msgspec.msgpack.Decoder(PeerWelcome)
_encoder = msgspec.msgpack.Encoder()


def encode_introduction(message: PeerHello | PeerWelcome) -> bytes:
    return INTRODUCTION + _encoder.encode(message)


def decode_hello(content: bytes) -> PeerHello:
    try:
        return _hello_decoder.decode(content[1:])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError(f"a malformed introduction of a server: {error}") from None


def decode_welcome(content: bytes) -> PeerWelcome:
    if content[:1] != INTRODUCTION:
        raise PeerError("the other end does not answer as a FlexGroup server does")
    try:
        return _welcome_decoder.decode(content[1:])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError(f"a malformed welcome of a server: {error}") from None


class LinkHost(Protocol):
    """What a link needs from its server."""

    def welcomed(self, link: Link, welcome: PeerWelcome) -> None: ...

    def controlled(self, link: Link, message: ControlMessage) -> None: ...

    def packets_came(
        self, link: Link, configuration: int, domain: int, data: bytes, at: int
    ) -> None: ...

    def counts_came(
        self, link: Link, configuration: int, domain: int, data: bytes, at: int
    ) -> None: ...

    def heard_from(self, link: Link) -> None: ...

    def link_closed(self, link: Link) -> None: ...


class Link:
    """One end of a connection between two servers, once it is known to be one."""

    def __init__(
        self,
        connection: Connection,
        host: LinkHost,
        name: str,
        address: str,
        server: int | None,
        opened_here: bool,
    ) -> None:
        self.connection = connection
        self.name = name
        self.address = address
        self.server = server
        """The number of the server at the other end; None: not a member yet."""
        self.opened_here = opened_here
        self.ready = not opened_here
        self._host = host
        self._before_ready: list[bytes] = []
        self.gathered: list[bytes] = []
        connection.reader.allow(MOST_BYTES_OF_SERVERS)
        connection.writer.allow(MOST_BYTES_OF_SERVERS)

    def frame(self, content: bytes) -> None:
        if not self.ready:
            welcome = decode_welcome(content)
            self.connection.writer.begin_at(welcome.session)
            self.ready = True
            self._host.welcomed(self, welcome)
            for waiting in self._before_ready:
                self.connection.send(waiting)
            self._before_ready = []
            return
        if not content:
            raise PeerError("an empty frame from a server")
        kind = content[0]
        self._host.heard_from(self)
        if kind in (PACKETS, COUNTS):
            configuration, at = read_varint(content, 1)
            domain, at = read_varint(content, at)
            if kind == PACKETS:
                self._host.packets_came(self, configuration, domain, content, at)
            else:
                self._host.counts_came(self, configuration, domain, content, at)
        elif kind == CONTROL:
            try:
                message = _control_decoder.decode(memoryview(content)[1:])
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise PeerError(f"a malformed message of a server: {error}") from None
            self._host.controlled(self, message)
        else:
            raise PeerError(f"a frame of kind {kind} from a server; kinds are 0 to 2")

    def lost(self, error: Exception | None) -> None:
        self._host.link_closed(self)

    def resumed(self) -> None:
        pass

    def say(self, message: ControlMessage) -> None:
        self._send(bytes([CONTROL]) + _encoder.encode(message))

    def pass_on(self, kind: int, configuration: int, domain: int, data: bytes | bytearray) -> None:
        """Goes out with the next `flush`."""
        head = bytearray([kind])
        write_varint(head, configuration)
        write_varint(head, domain)
        self.gathered.append(bytes(head + data))

    def flush(self) -> None:
        gathered, self.gathered = self.gathered, []
        if self.ready:
            self.connection.send_all(gathered)
        else:
            self._before_ready += gathered

    def _send(self, content: bytes) -> None:
        if self.gathered:
            self.flush()
        if self.ready:
            self.connection.send(content)
        else:
            self._before_ready.append(content)
