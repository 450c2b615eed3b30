"""Copying and fingerprinting the state of a layer.

Works on the declared attributes of any layer, compiled or not. A copy shares immutable
values and duplicates containers; a fingerprint does not depend on the order in which a
dict or a set was filled, nor on the hash seed of the process that computes it.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TypeVar

from flexgroup.core.fields import declared_only, names_of
from flexgroup.core.layer import Layer, Record, copied
from flexgroup.core.message import Message, Packet
from flexgroup.core.stack import Stack

_NOT_STATE = frozenset({"context", "effects", "is_top", "level", "process", "size"})

_names_of_class: dict[type[Layer | Record], tuple[str, ...]] = {}

AnyLayer = TypeVar("AnyLayer", bound=Layer)


def state_names(part: Layer | Record) -> tuple[str, ...]:
    """The attributes that make up the state of a layer, or of a record in it, sorted."""
    cls = type(part)
    known = _names_of_class.get(cls)
    if known is None:
        if isinstance(part, Record):
            found = set(names_of(cls))
            if cls.__dictoffset__ != 0:
                declared_only(part)
                return tuple(sorted(found))
        else:
            found = set()
            for base in cls.__mro__:
                own = base.__dict__.get("__mypyc_attrs__") or base.__dict__.get("__slots__", ())
                found.update(name for name in own if not name.startswith("__"))
            found -= _NOT_STATE
        attributes = getattr(part, "__dict__", None)
        if attributes is not None:
            # Without slots, it may have another attribute the next time.
            return tuple(sorted(found.union(attributes)))
        known = _names_of_class[cls] = tuple(sorted(found))
    return known


def fork_layer(layer: AnyLayer) -> AnyLayer:
    twin = type(layer)(layer.context)
    twin.level = layer.level
    twin.effects = list(layer.effects)
    for name in state_names(layer):
        value = getattr(layer, name)
        if isinstance(value, Layer):
            setattr(twin, name, fork_layer(value))
        elif isinstance(value, Stack):
            setattr(twin, name, fork(value))
        else:
            setattr(twin, name, copied(value))
    return twin


def fork(stack: Stack) -> Stack:
    """A stack in the same state that shares nothing mutable with this one."""
    twin = Stack([fork_layer(layer) for layer in stack.layers])
    twin.take_over(stack)
    return twin


def fingerprint(stack: Stack) -> bytes:
    """Sixteen bytes that are equal for equal states and differ, in practice, otherwise."""
    out = bytearray()
    _write_stack(out, stack)
    return blake2b(out, digest_size=16).digest()


def _write_stack(out: bytearray, stack: Stack) -> None:
    for layer in stack.layers:
        for name in state_names(layer):
            write_canonically(out, getattr(layer, name))
    for count in stack.sent_counts():
        write_canonically(out, count)


def write_canonically(out: bytearray, value: object) -> None:
    """Append a representation in which equal values, and only those, are equal."""
    if value is None:
        out += b"N"
    elif isinstance(value, bool):
        out += b"T" if value else b"F"
    elif isinstance(value, int):
        digits = b"%d" % value
        out += b"i%d:" % len(digits) + digits
    elif isinstance(value, str):
        encoded = value.encode()
        out += b"s%d:" % len(encoded) + encoded
    elif isinstance(value, bytes):
        out += b"b%d:" % len(value) + value
    elif isinstance(value, tuple | list):
        out += b"(%d:" % len(value)
        for item in value:
            write_canonically(out, item)
    elif isinstance(value, dict):
        out += b"{%d:" % len(value)
        for key, item in sorted((_canonical(key), _canonical(value[key])) for key in value):
            out += key
            out += item
    elif isinstance(value, set | frozenset):
        out += b"<%d:" % len(value)
        for item in sorted(_canonical(item) for item in value):
            out += item
    elif isinstance(value, Message):
        out += b"M"
        write_canonically(out, (value.id, value.destinations))
        write_canonically(out, value.payload)
    elif isinstance(value, Packet):
        write_canonically(out, type(value).__name__)
        for name, _ in value.FIELDS:
            write_canonically(out, getattr(value, name))
    elif isinstance(value, Record | Layer):
        # The name of the class tells a record without content from None, and from other records.
        out += b"R"
        write_canonically(out, type(value).__name__)
        for name in state_names(value):
            write_canonically(out, getattr(value, name))
    elif isinstance(value, Stack):
        out += b"K"
        _write_stack(out, value)
    else:
        raise TypeError(
            f"{type(value).__name__} cannot be part of a layer's state: use integers, "
            "strings, bytes, tuples, messages, packets, lists, dicts and sets of them, or records"
        )


def _canonical(value: object) -> bytes:
    out = bytearray()
    write_canonically(out, value)
    return bytes(out)
