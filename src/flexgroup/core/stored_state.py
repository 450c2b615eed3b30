"""The state of a layer as bytes, for another layer that hosts it and keeps it in stable storage.

Unlike the wire codec, which knows the fields of packets beforehand, this one writes what each value
is. Of records and packets it writes the place of their type in a list that writer and reader have.
"""

from __future__ import annotations

from typing import Any, Final

from flexgroup.core.errors import PeerError
from flexgroup.core.fields import names_of
from flexgroup.core.layer import Layer, Record
from flexgroup.core.message import Message, Packet
from flexgroup.core.state import state_names
from flexgroup.core.varints import Reader, varints

Types = tuple[type[Record] | type[Packet], ...]

# What a value is.
NONE: Final = 0
FALSE: Final = 1
TRUE: Final = 2
NUMBER: Final = 3
NEGATIVE: Final = 4
TEXT: Final = 5
BYTES: Final = 6
TUPLE: Final = 7
LIST: Final = 8
SET: Final = 9
DICT: Final = 10
MESSAGE: Final = 11
TYPED: Final = 12


def state_of(layer: Layer) -> tuple[Any, ...]:
    """What its attributes are, in the order of `state_names`."""
    return tuple([getattr(layer, name) for name in state_names(layer)])


def set_state(layer: Layer, state: tuple[Any, ...]) -> None:
    """Put a layer of the same kind, which is not used yet, into this state."""
    for name, value in zip(state_names(layer), state, strict=True):
        setattr(layer, name, value)


def encode_state(value: object, types: Types) -> bytes:
    out = bytearray()
    _write(out, value, types)
    return bytes(out)


def decode_state(data: bytes, types: Types) -> Any:
    """What `encode_state` was given; raises PeerError if that cannot have written it."""
    reader = Reader(data, 0, len(data))
    value = _read(reader, types)
    if reader.position != reader.end:
        raise PeerError(f"{reader.end - reader.position} bytes are left over after a state")
    return value


def _write(out: bytearray, value: Any, types: Types) -> None:
    if value is None:
        out.append(NONE)
    elif isinstance(value, bool):
        out.append(TRUE if value else FALSE)
    elif isinstance(value, int):
        out += varints([NUMBER, value] if value >= 0 else [NEGATIVE, -value])
    elif isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        out += varints([TEXT if isinstance(value, str) else BYTES, len(data)]) + data
    elif isinstance(value, tuple | list | set):
        kind = TUPLE if isinstance(value, tuple) else LIST if isinstance(value, list) else SET
        out += varints([kind, len(value)])
        for item in sorted(value) if kind == SET else value:
            _write(out, item, types)
    elif isinstance(value, dict):
        out += varints([DICT, len(value)])
        for key, item in value.items():
            _write(out, key, types)
            _write(out, item, types)
    elif isinstance(value, Message):
        out.append(MESSAGE)
        for item in (value.id, value.destinations, value.payload):
            _write(out, item, types)
    else:
        if type(value) not in types:
            raise TypeError(f"{type(value).__name__} is not among the types of the state")
        out += varints([TYPED, types.index(type(value))])
        for name in _fields(type(value)):
            _write(out, getattr(value, name), types)


def _fields(cls: Any) -> list[str]:
    """The fields of a record or a packet, in the order of its constructor."""
    return [name for name, _ in cls.FIELDS] if issubclass(cls, Packet) else list(names_of(cls))


def _read(reader: Reader, types: Types) -> Any:
    kind = reader.varint()
    if kind in (NONE, FALSE, TRUE):
        return (None, False, True)[kind]
    if kind == NUMBER:
        return reader.varint()
    if kind == NEGATIVE:
        return -reader.varint()
    if kind == TEXT:
        return reader.bytes().decode()
    if kind == BYTES:
        return reader.bytes()
    if kind in (TUPLE, LIST, SET):
        items = [_read(reader, types) for _ in range(reader.varint())]
        return items if kind == LIST else tuple(items) if kind == TUPLE else set(items)
    if kind == DICT:
        pairs = [(_read(reader, types), _read(reader, types)) for _ in range(reader.varint())]
        return dict(pairs)
    if kind == MESSAGE:
        return Message(_read(reader, types), _read(reader, types), _read(reader, types))
    number = reader.varint()
    if kind != TYPED or number >= len(types):
        raise PeerError(f"a value of kind {kind}, number {number}: a state has no such value")
    make: Any = types[number]
    return make(*[_read(reader, types) for _ in _fields(make)])
