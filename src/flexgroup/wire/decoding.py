"""Decoding what comes from the other end of a connection."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from flexgroup.core.errors import PeerError

T = TypeVar("T")


def decoded(decoder: msgspec.msgpack.Decoder[T], data: bytes | memoryview, what: str) -> T:
    """The message in this data; if it is none, the error begins with `what` it should be."""
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError(f"{what}: {error}") from None
