"""A picture of everything that an object refers to: equal states have equal pictures.

Works on any objects, compiled or not. Containers keep their order, except sets; so states that
differ only in the order in which something was filled in may count as different, which costs
time and hides nothing.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType

from msgspec import Struct, msgpack

from flexgroup.core.codec import Codec
from flexgroup.core.layer import Context
from flexgroup.protocols.catalogue import StackPlan

_PLAIN = frozenset({int, float, str, bool, bytes, bytearray, type(None)})
_CONSTANT = (FunctionType, BuiltinFunctionType, MethodType, type, Codec, Context, StackPlan, Enum)
"""What is the same in all states of a server."""

_MEASURES = frozenset({"packets_received", "packets_sent", "messages_cast", "messages_delivered"})
"""What is counted for people, and changes nothing."""

_names: dict[type, tuple[str, ...]] = {}


def picture(value: object) -> bytes:
    parts: list[bytes] = []
    _write(parts, value, {})
    return b"".join(parts)


def _write(parts: list[bytes], value: object, seen: dict[int, int]) -> None:
    if type(value) in _PLAIN:
        parts.append(b"%r;" % (value,))
    elif isinstance(value, Struct):
        parts.append(type(value).__name__.encode() + msgpack.encode(value))
    elif isinstance(value, tuple | list | deque):
        parts.append(b"(%d:" % len(value))
        for item in value:
            _write(parts, item, seen)
    elif isinstance(value, dict):
        parts.append(b"{%d:" % len(value))
        for key, item in value.items():
            _write(parts, key, seen)
            _write(parts, item, seen)
    elif isinstance(value, set | frozenset):
        parts.append(b"<%d:" % len(value))
        parts.extend(sorted(picture(item) for item in value))
    elif not isinstance(value, _CONSTANT):
        _write_object(parts, value, seen)


def _write_object(parts: list[bytes], value: object, seen: dict[int, int]) -> None:
    if id(value) in seen:
        parts.append(b"@%d" % seen[id(value)])
        return
    seen[id(value)] = len(seen)
    cls = type(value)
    parts.append(cls.__name__.encode())
    attributes = getattr(value, "__dict__", None)
    for name in (*_names_of(cls), *(attributes or ())):
        if name not in _MEASURES and hasattr(value, name):
            parts.append(name.encode())
            _write(parts, getattr(value, name), seen)


def _names_of(cls: type) -> tuple[str, ...]:
    """The attributes of all objects of a class that are not in their `__dict__`."""
    known = _names.get(cls)
    if known is None:
        found: dict[str, None] = {}
        for base in cls.__mro__:
            own = base.__dict__.get("__mypyc_attrs__") or base.__dict__.get("__slots__", ())
            names = (own,) if isinstance(own, str) else own
            found |= dict.fromkeys(name for name in names if not name.startswith("__"))
        known = _names[cls] = tuple(found)
    return known
