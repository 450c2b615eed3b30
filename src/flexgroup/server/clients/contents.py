"""The contents of an envelope: messages with their senders.

They are encoded once, by the server whose clients sent them, in the form in which clients get
them: the other servers pass the bytes on without looking at each message.
"""

from __future__ import annotations

import msgspec

from flexgroup.wire.frames import decoded
from flexgroup.wire.requests import Delivered

_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(list[tuple[str, bytes]])


def packed(messages: list[tuple[str, bytes]]) -> bytes:
    """Encode messages, each with its sender."""
    return _encode(messages)


def opened(contents: bytes) -> list[tuple[str, bytes]]:
    return decoded(_decoder, contents, "an envelope with malformed contents")


def head_of(group: int) -> bytes:
    """What goes before the contents of an envelope to make them deliveries of this group."""
    return _encode(Delivered(group, []))[:-1]
