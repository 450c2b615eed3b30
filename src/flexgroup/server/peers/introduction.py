"""How a server that opens a link to another one introduces itself.

Not compiled: msgspec reads the types of a message from its annotations.
"""

from __future__ import annotations

import hmac

import msgspec

from flexgroup.core.errors import PeerError
from flexgroup.wire.frames import decoded
from flexgroup.wire.requests import Name, Number

VERSION = 9

INTRODUCTION = b"\xc1"
"""Begins the first frame of a server. No frame of a client begins so: MessagePack never does."""


class PeerHello(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The server that opens a link says who it is."""

    version: int
    cluster: Name | None
    """The cluster that the server belongs to; a newcomer does not know it yet."""
    name: Name
    address: Name
    number: Number | None
    protocols: list[Name]
    """The protocols that its stacks may name."""
    proof: bytes = b""
    """Whoever says to have a number shows that it knows the secret of the server it has dialled."""


class PeerWelcome(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    version: int
    cluster: Name | None
    """None: this server is joining others itself, and belongs to none yet."""
    name: Name
    number: Number | None
    session: Number
    """The number of the next frame of the server that opened the link."""
    protocols: list[Name]
    proof: bytes = b""
    """Shows the same to a server that has shown it: nobody else is where that one has dialled."""


_hello_decoder = msgspec.msgpack.Decoder(PeerHello)
_welcome_decoder = msgspec.msgpack.Decoder(PeerWelcome)
_encoder = msgspec.msgpack.Encoder()


def encode_introduction(message: PeerHello | PeerWelcome) -> bytes:
    return INTRODUCTION + _encoder.encode(message)


def proof_of(secret: int, number: int | None, is_answer: bool) -> bytes:
    """What only those can say who know the secret of the server that is dialled, which this does
    not tell; `number` is that of the server that dials."""
    said = f"{'welcome' if is_answer else 'hello'} {number}"
    return hmac.digest(str(secret).encode(), said.encode(), "sha256")


def is_proof(shown: bytes, secret: int, number: int | None, is_answer: bool) -> bool:
    return hmac.compare_digest(shown, proof_of(secret, number, is_answer))


def decode_hello(content: bytes) -> PeerHello:
    return decoded(_hello_decoder, content[1:], "a malformed introduction of a server")


def decode_welcome(content: bytes) -> PeerWelcome:
    if content[:1] != INTRODUCTION:
        raise PeerError("the other end does not answer as a FlexGroup server does")
    return decoded(_welcome_decoder, content[1:], "a malformed welcome of a server")
