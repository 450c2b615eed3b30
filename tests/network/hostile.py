"""Frames that get past the first check: well-formed by their schema, and wrong in content.

Values are drawn from the types of the messages themselves, so new messages and fields are tried
as soon as they are there. Numbers and names are often those that the servers use, or next to them.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
from typing import Any

import msgspec
from msgspec import inspect as types

from flexgroup.core.codec import Codec
from flexgroup.core.fields import (
    ALL_BYTES,
    BYTES,
    ID,
    INT,
    INTS,
    MESSAGE,
    MESSAGES,
    PACKET,
    STAMP,
)
from flexgroup.core.fields import PACKETS as QUOTED
from flexgroup.core.layer import Layer
from flexgroup.core.message import Message, Packet, message_id, stamp
from flexgroup.core.varints import varints
from flexgroup.membership.messages import (
    Accept,
    AnyControl,
    Commit,
    Decided,
    NotMember,
    Prepared,
    Propose,
    Rejected,
)
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.protocols.table import PROTOCOLS
from flexgroup.server.hosting.keeping import AnyFromKeeper
from flexgroup.server.peers.introduction import (
    VERSION,
    PeerHello,
    encode_introduction,
    proof_of,
)
from flexgroup.server.peers.links import CONTROL, COUNTS, LOGS, PACKETS
from flexgroup.server.peers.pieces import BEGUN, ENDED
from flexgroup.server.server import GroupServer
from flexgroup.wire import requests
from flexgroup.wire.frames import FrameReader, FrameWriter
from flexgroup.worlds.network.envelope import seal

encoded = msgspec.msgpack.Encoder().encode

STACKS = ("causal", "fifo dcc", "reliable atomic", "skeen", "xamp-causal")
"""The groups that are attacked have these."""

BELIEVED = (NotMember, Decided, Prepared, Accept, Commit, Propose, Rejected)
"""What servers believe each other, since they have to: how a change has ended, what clients of the
other want, and what the other has delivered, or lost because it has come back: then its clients
are taken out of their groups."""

LARGEST = 2**63 - 1


def kinds_of(union: object) -> list[types.StructType]:
    of = types.type_info(union)
    assert isinstance(of, types.UnionType)
    return [one for one in of.types if isinstance(one, types.StructType)]


REQUESTS = kinds_of(requests.AnyFromClient)
CONTROLS = kinds_of(AnyControl)
LOG_MESSAGES = kinds_of(AnyFromKeeper)


class Nonsense:
    """Draws values; equal seeds draw equal ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = [0, 1, 2, 3, 4, 5, 7, 64, 1000, 2**20, 2**32 - 1, 2**40, LARGEST]
        """Numbers that may mean something to a server."""
        self.texts = ["", "a", "g0", "g1", "s1", "s2", "s3", "ann", "bob", *STACKS, "no-such",
                      "127.0.0.1:1", "nowhere", "[::1", "x" * 200, "\0", "\u20ac"]  # fmt: skip
        self.believable: dict[str, Any] = {}
        """Fields of messages, by name, that mostly have these values."""
        self._codecs = [self._codec(stack) for stack in STACKS]

    @staticmethod
    def _codec(stack: str) -> tuple[list[type[Layer]], Codec]:
        layers = parse_stack(stack).layers
        return layers, Codec(layers)

    def knows(self, server: GroupServer) -> None:
        """Draw numbers from what this server has installed."""
        configuration = server.deployment.configuration
        at = configuration.number
        self.numbers += [at - 1, at, at, at, at + 1, configuration.next_group]
        self.numbers += [group.number for group in configuration.groups]

    # Values of a type.

    def number(self) -> int:
        value = self.random.choice(self.numbers)
        return value if self.random.random() < 0.9 else -value

    def value(self, of: types.Type) -> Any:
        draw = self.random
        match of:
            case types.IntType():
                low = of.ge if of.ge is not None else -(2**63)
                high = of.lt - 1 if of.lt is not None else LARGEST
                return min(max(self.number(), low), high)
            case types.FloatType():
                return draw.choice((0.0, -1.0, 1e300, float("inf"), float("-inf"), float("nan")))
            case types.BoolType():
                return draw.random() < 0.5
            case types.StrType():
                texts = [text for text in self.texts if len(text) >= (of.min_length or 0)]
                return draw.choice(texts)
            case types.BytesType():
                return self.payload() if draw.random() < 0.5 else draw.randbytes(draw.randrange(30))
            case types.NoneType():
                return None
            case types.ListType() | types.VarTupleType():
                fewest = of.min_length or 0
                size = max(fewest, draw.choice((0, 1, 1, 2, 3)))
                return [self.value(of.item_type) for _ in range(size)]
            case types.TupleType():
                return [self.value(item) for item in of.item_types]
            case types.NamedTupleType():
                return [self.value(field.type) for field in of.fields]
            case types.DictType():
                size = draw.choice((0, 1, 2))
                return {self.value(of.key_type): self.value(of.value_type) for _ in range(size)}
            case types.UnionType():
                return self.value(draw.choice(of.types))
            case types.StructType():
                fields = [self._field_of(field) for field in of.fields]
                return fields if of.tag is None else [of.tag, *fields]
        raise AssertionError(of)

    def _field_of(self, field: types.Field) -> Any:
        known = self.believable.get(field.name)
        return self.value(field.type) if known is None or self._is_rare() else known

    def _is_rare(self) -> bool:
        return self.random.random() < 0.1

    def one_of(self, kinds: list[types.StructType], but: tuple[type, ...] = ()) -> Any:
        return self.value(self.random.choice([one for one in kinds if one.cls not in but]))

    # Contents of frames.

    def client_frame(self) -> bytes:
        count = self.random.choice((1, 1, 1, 5))
        but = (requests.Hello, requests.Goodbye, requests.Create)
        return encoded([self.one_of(REQUESTS, but) for _ in range(count)])

    def peer_frame(self, is_believed: bool) -> bytes:
        """If `is_believed`, the sender is taken for a server of the cluster; then what it says
        about others, and about its own clients, is left out."""
        if self._is_rare():
            return bytes([self.random.choice((BEGUN, ENDED))]) + self.peer_frame(is_believed)
        kind = self.random.choice((CONTROL, CONTROL, PACKETS, COUNTS, LOGS))
        if kind == CONTROL:
            but = BELIEVED if is_believed else ()
            return bytes([CONTROL]) + encoded(self.one_of(CONTROLS, but))
        domain = self.random.randrange(len(STACKS)) if not self._is_rare() else abs(self.number())
        head = varints([kind, self.believable.get("at", abs(self.number())), domain])
        if kind == LOGS:
            return head + encoded(self.one_of(LOG_MESSAGES))
        return head + (self.packets(domain) if kind == PACKETS else self.counts())

    def counts(self) -> bytes:
        size = self.random.choice((0, 3, 3, 4, 30))
        return varints([abs(self.number()) for _ in range(size)])

    def packets(self, domain: int) -> bytes:
        """Mostly of the stack that the domain has, as servers number them."""
        data = b""
        for _ in range(self.random.choice((1, 1, 3))):
            stack = domain if not self._is_rare() else self.random.randrange(len(STACKS))
            layers, codec = self._codecs[stack % len(STACKS)]
            packet = codec.encode(self.packet(layers, 0))
            length = len(packet) if self.random.random() < 0.9 else abs(self.number())
            data += varints([length, abs(self.number()), abs(self.number())]) + packet
        if self.random.random() < 0.1:
            data = data[: self.random.randrange(len(data))]
        return data

    def packet(self, layers: list[type[Layer]], level: int) -> Packet:
        make = self.random.choice(layers[level].PACKETS)
        return make(*[self.field(kind, layers, level) for _, kind in make.FIELDS])

    def field(self, kind: int, layers: list[type[Layer]], level: int) -> Any:
        draw = self.random
        small = draw.choice((0, 1, 2, 3, 5, 2**19))
        if kind == INT:
            return draw.choice((small, abs(self.number())))
        if kind == ID:
            return message_id(small, draw.choice((0, 1, 2, 2**40)))
        if kind == STAMP:
            return stamp(draw.choice((0, 1, 2, 2**40)), small)
        if kind == INTS:
            return tuple(draw.choice((0, 1, 2, 2**40)) for _ in range(draw.choice((0, 1, 3, 9))))
        if kind == MESSAGE:
            to = tuple(sorted({draw.choice((0, 1, 2, 3, 2**19)) for _ in range(3)}))
            content = self.packet(layers, level + 1) if level + 1 < len(layers) else self.payload()
            return Message(message_id(small, draw.choice((0, 1, 2**40))), to, content)
        if kind == MESSAGES:
            return tuple(self.field(MESSAGE, layers, level) for _ in range(draw.choice((0, 1, 3))))
        if kind in (BYTES, ALL_BYTES):
            data = draw.randbytes(draw.choice((0, 16, 64)))
            return data if kind == BYTES else (data,) * draw.choice((0, 1, 3))
        if kind in (PACKET, QUOTED):
            flat = [make for make in layers[level].PACKETS if not quotes(make)]
            make = draw.choice(flat)
            quoted = make(*[self.field(kind, layers, level) for _, kind in make.FIELDS])
            return quoted if kind == PACKET else (quoted,) * draw.choice((0, 1, 3))
        return draw.choice(self.texts)

    def payload(self) -> bytes:
        """Of an envelope, which may say anything."""
        draw = self.random
        lines = tuple(
            (abs(self.number()), abs(self.number())) for _ in range(draw.choice((0, 1, 2)))
        )
        contents = draw.choice((b"", b"\x90", encoded([("ann", b"x")]), draw.randbytes(5)))
        return seal(lines, draw.choice((0, 1, 1, 2**40)), contents)


def quotes(packet: type[Packet]) -> bool:
    """Whether packets of this type have others of their layer in them."""
    return any(kind in (PACKET, QUOTED) for _, kind in packet.FIELDS)


class Hostile:
    """A connection to a server under attack."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.frames = FrameWriter(1 << 30)

    @property
    def is_open(self) -> bool:
        return not (self.reader.at_eof() or self.writer.is_closing())

    async def greet(self, content: bytes) -> bytes:
        self.writer.write(self.frames.frame(content))
        answers = FrameReader()
        while (content_of_answer := answers.next_frame()) is None:
            data = await self.reader.read(1 << 16)
            if not data:
                raise ConnectionResetError
            answers.feed(data)
        return content_of_answer

    async def send(self, contents: list[bytes]) -> None:
        """Send these, and read what is answered, as far as it has come."""
        self.writer.write(b"".join([self.frames.frame(content) for content in contents]))
        await self.writer.drain()

    async def swallow(self) -> None:
        """Read until the end."""
        try:
            while await self.reader.read(1 << 20):
                pass
        except OSError:
            pass

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


async def _connected(server: GroupServer, tls: ssl.SSLContext | None) -> Hostile:
    host, _, port = server.address.rpartition(":")
    return Hostile(*await asyncio.open_connection(host, int(port), ssl=tls))


async def hostile_client(
    server: GroupServer, name: str, tls: ssl.SSLContext | None = None
) -> Hostile:
    hostile = await _connected(server, tls)
    answer = await hostile.greet(encoded([requests.Hello(requests.VERSION, name)]))
    (welcome,) = msgspec.msgpack.decode(answer, type=list[requests.Welcome])
    hostile.frames.begin_at(welcome.session)
    return hostile


async def hostile_peer(
    server: GroupServer,
    number: int | None,
    tls: ssl.SSLContext | None = None,
    is_insider: bool = True,
) -> Hostile:
    """A newcomer, or one that says to be the server of that number; an insider knows the secret of
    the one that it attacks, and others only guess."""
    hostile = await _connected(server, tls)
    cluster = None if number is None else server.identity.cluster
    secret = server.membership.secret if is_insider else 0
    assert secret is not None
    proof = proof_of(secret, number, False)
    hello = PeerHello(VERSION, cluster, "m", "127.0.0.1:1", number, sorted(PROTOCOLS), proof)
    answer = await hostile.greet(encode_introduction(hello))
    hostile.frames.begin_at(msgspec.msgpack.decode(answer[1:])[4])
    return hostile
