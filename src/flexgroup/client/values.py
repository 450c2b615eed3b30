"""Python values as messages: MessagePack, safe to read whoever sent it.

None, booleans, integers, floats, texts, bytes, lists, dicts and points in time (with a time zone)
come back as they were; tuples and sets come back as lists. Integers may be large, unless they are
keys or parts of a type. With a type, also dataclasses, msgspec's structs, enumerations, sets,
tuples and whatever else msgspec knows come back as what they were, and a message that does not
fit the type is refused:

    group = await link.join("orders", codec=flexgroup.values.of(Order))

Nothing that is read is ever run. Anything wrong with it is a PeerError.
"""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar, cast

import msgspec

from flexgroup.client.keys import check_keys
from flexgroup.core.errors import PeerError, UsageError

MOST_BYTES = 16 << 20
DEEPEST = 64
"""How many containers may lie inside one another."""
MOST_BYTES_OF_AN_INTEGER = 1 << 10
UNCHECKED_BYTES = 1 << 12
"""A message of so few bytes has no room for enough keys to do harm."""

BIG_INTEGER = 1
"""The code of the MessagePack extension for integers of more than 64 bits: two's complement,
most significant byte first."""

T = TypeVar("T")


class Codec(Protocol[T]):
    """Turns what an application sends into bytes, and back. This module is one."""

    def encode(self, value: T, /) -> bytes: ...
    def decode(self, data: bytes, /) -> T: ...


def encode(value: Any, /) -> bytes:
    """Return the bytes of a message that holds the value."""
    if _is_too_deep(value):
        raise UsageError(f"the value is nested deeper than {DEEPEST} containers; send it in parts")
    try:
        try:
            data = _encoder.encode(value)
        except OverflowError:
            data = _encoder.encode(_with_big_integers(value))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UsageError(
            f"a message cannot hold this value ({error}); send bytes, numbers, texts, lists, dicts,"
            " dataclasses or msgspec structs"
        ) from None
    if MOST_BYTES >= len(data) > UNCHECKED_BYTES:
        try:
            check_keys(data, DEEPEST)
        except PeerError as error:
            raise UsageError(f"receivers refuse this value ({error}); send it as a list") from None
    return data


def decode(data: bytes, /) -> Any:
    """Return the value, of whatever type the sender chose."""
    if MOST_BYTES >= len(data) > UNCHECKED_BYTES:
        check_keys(data, DEEPEST)
    value = _decoded(_decoder, data)
    if _is_too_deep(value):
        raise PeerError(f"the value is nested deeper than {DEEPEST} containers")
    return value


def of(type: type[T]) -> Codec[T]:
    """Return a codec for values of one type, which refuses others on both sides."""
    return _Typed(type)


class _Typed(Generic[T]):
    __slots__ = ("_decoder", "_type")

    def __init__(self, type: type[T]) -> None:
        self._type = type
        try:
            self._decoder = msgspec.msgpack.Decoder(type, ext_hook=_extension)
        except TypeError as error:
            raise UsageError(f"values of {type} cannot be messages: {error}") from None

    def encode(self, value: T, /) -> bytes:
        data = encode(value)
        try:
            self.decode(data)
        except PeerError as error:
            raise UsageError(f"this is no {self._type.__name__}: {error}") from None
        return data

    def decode(self, data: bytes, /) -> T:
        return cast(T, _decoded(self._decoder, data))


def _decoded(decoder: msgspec.msgpack.Decoder[Any], data: bytes) -> Any:
    if len(data) > MOST_BYTES:
        raise PeerError(f"a value of {len(data)} bytes; at most {MOST_BYTES} are accepted")
    try:
        return decoder.decode(data)
    except RecursionError:
        raise PeerError(f"the value is nested deeper than {DEEPEST} containers") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
        # TypeError: a dict with a key that cannot be one.
        raise PeerError(f"a message that is not the value it should be: {error}") from None


def _extension(code: int, data: memoryview) -> int:
    if code != BIG_INTEGER:
        raise PeerError(f"an extension of MessagePack with the code {code}, which is not known")
    if len(data) > MOST_BYTES_OF_AN_INTEGER:
        raise PeerError(
            f"an integer of {len(data)} bytes; at most {MOST_BYTES_OF_AN_INTEGER} are accepted"
        )
    return int.from_bytes(data, "big", signed=True)


def _with_big_integers(value: Any) -> Any:
    """Return the value with extensions for the integers that MessagePack has no room for."""
    if isinstance(value, int):
        if -(1 << 63) <= value < 1 << 64:
            return value
        length = value.bit_length() // 8 + 1
        if length > MOST_BYTES_OF_AN_INTEGER:
            raise UsageError(
                f"an integer of {length} bytes; a message takes {MOST_BYTES_OF_AN_INTEGER}:"
                " send larger ones as text or bytes"
            )
        return msgspec.msgpack.Ext(BIG_INTEGER, value.to_bytes(length, "big", signed=True))
    if isinstance(value, dict):
        return {key: _with_big_integers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_big_integers(item) for item in value]
    return value


CONTAINERS = frozenset((list, tuple, dict))


def _is_too_deep(value: Any) -> bool:
    if type(value) not in CONTAINERS:
        return False
    level = [value]
    for _ in range(DEEPEST):
        level = [
            item
            for container in level
            for item in (container.values() if type(container) is dict else container)
            if type(item) in CONTAINERS
        ]
        if not level:
            return False
    return True


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(ext_hook=_extension)
