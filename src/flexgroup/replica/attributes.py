"""The attributes of an object as pieces of bytes, and back."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar, get_origin, get_type_hints
from weakref import WeakKeyDictionary

from msgspec import Struct

from flexgroup.client import values
from flexgroup.client.values import Codec
from flexgroup.core.errors import UsageError

AT_ONCE = 1_000
"""So many items of a container go into one piece."""


class Attribute(Struct, array_like=True):
    """An attribute, or some more items of one that is a container."""

    name: str
    is_first: bool
    value: bytes


_attributes = values.of(Attribute)


def state_of(replica: object) -> dict[str, Any]:
    """Return the attributes that all replicas have in common."""
    return {name: value for name, value in vars(replica).items() if not name.startswith("_")}


def pieces_of(replica: object) -> Iterator[bytes]:
    """Return pieces that hold all of the state."""
    codecs = codecs_of(type(replica))
    for name, value in state_of(replica).items():
        codec = codecs.get(name)
        for number, some in enumerate(_in_parts(value)):
            data = _checked(type(replica), name, some) if codec is None else codec.encode(some)
            yield _attributes.encode(Attribute(name, number == 0, data))


def take_piece(replica: object, piece: bytes) -> None:
    """Set the attribute that a piece holds, or add to it."""
    attribute = _attributes.decode(piece)
    name = attribute.name
    value = codecs_of(type(replica)).get(name, values).decode(attribute.value)
    held = vars(replica)
    if attribute.is_first:
        held[name] = value
    elif isinstance(value, dict | set):
        held[name].update(value)
    else:
        held[name].extend(value)


def _in_parts(value: Any) -> Iterator[Any]:
    kind = type(value)
    if kind not in (dict, list, set, deque) or len(value) <= AT_ONCE:
        yield value
        return
    items = iter(value.items() if kind is dict else value)
    while some := kind(islice(items, AT_ONCE)):
        yield some


_known: WeakKeyDictionary[type, dict[str, Codec[Any]]] = WeakKeyDictionary()


def codecs_of(kind: type) -> dict[str, Codec[Any]]:
    """Return the codecs of attributes whose types the class tells."""
    known = _known.get(kind)
    if known is not None:
        return known
    try:
        hints = get_type_hints(kind)
    except NameError as error:
        raise UsageError(
            f"an attribute of {kind.__name__} is annotated with a type that cannot be found"
            f" ({error}); define or import it where the module can see it"
        ) from None
    codecs = _known[kind] = {
        name: values.of(hint)
        for name, hint in hints.items()
        if not name.startswith("_") and get_origin(hint) is not ClassVar
    }
    return codecs


def _checked(kind: type, name: str, value: Any) -> bytes:
    """Encode a value of which nobody has said the type: it has to come back as it is."""
    data = values.encode(value)
    back = values.decode(data)
    if type(back) is not type(value) or back != value:
        raise UsageError(
            f"the attribute {name} of {kind.__name__} would come back as another value at a"
            f" newcomer, {back!r:.60} for {value!r:.60}: annotate its type in the class, as in"
            f" `{name}: {type(value).__name__}`"
        )
    return data
