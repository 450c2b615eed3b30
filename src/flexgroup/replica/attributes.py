"""The attributes of an object as pieces of bytes, and back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar, get_origin, get_type_hints
from weakref import WeakKeyDictionary

from msgspec import Struct

from flexgroup.client import values
from flexgroup.client.values import Codec
from flexgroup.core.errors import UsageError

AT_ONCE = 1_000
"""So many items of a container go into one piece, or fewer if they are large."""

MOST_BYTES = 1 << 20
"""A container of more bytes goes into several pieces, unless it has a single item."""


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
        codec = codecs.get(name, values)
        is_first = True
        for some, data in _in_parts(value):
            _check(type(replica), name, some, codec.decode(data))
            yield _attributes.encode(Attribute(name, is_first, data))
            is_first = False


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


def _in_parts(value: Any) -> Iterator[tuple[Any, bytes]]:
    """Return parts of a container, or another value as a whole, and each encoded."""
    kind = type(value)
    if kind not in (dict, list, set) or len(value) <= AT_ONCE:
        yield from _in_halves(value)
        return
    items = iter(value.items() if kind is dict else value)
    while some := kind(islice(items, AT_ONCE)):
        yield from _in_halves(some)


def _in_halves(value: Any) -> Iterator[tuple[Any, bytes]]:
    data = values.encode(value)
    kind = type(value)
    if len(data) <= MOST_BYTES or kind not in (dict, list, set) or len(value) < 2:
        yield value, data
        return
    items = list(value.items() if kind is dict else value)
    middle = len(items) // 2
    yield from _in_halves(kind(items[:middle]))
    yield from _in_halves(kind(items[middle:]))


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


def _check(kind: type, name: str, value: Any, back: Any) -> None:
    """See whether a value has come back as it was."""
    if name in codecs_of(kind):
        # A float may be annotated and an integer given, which do the same.
        is_so = type(back) is type(value) or isinstance(value, int | float | str)
    else:
        # What is not equal to itself, as NaN, at least reads the same.
        is_so = type(back) is type(value) and (back == value or repr(back) == repr(value))
    if not is_so:
        raise UsageError(
            f"the attribute {name} of {kind.__name__} would come back as another value at a"
            f" newcomer, {back!r:.60} for {value!r:.60}: annotate its type in the class, as in"
            f" `{name}: {type(value).__name__}`, and let it have that type"
        )


def check_class_of(replica: object) -> None:
    """See whether all that looks like an attribute of the object is one."""
    kind = type(replica)
    constant = {name for name, hint in get_type_hints(kind).items() if get_origin(hint) is ClassVar}
    for one in kind.__mro__:
        slots = vars(one).get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            if not name.startswith("_"):
                raise UsageError(
                    f"{one.__name__} has a slot for {name}, which newcomers would not be told of:"
                    " define the class without slots"
                )
        for name, value in vars(one).items():
            is_own = name in vars(replica) or name.startswith("_")
            if is_own or name.isupper() or name in constant:
                continue
            if isinstance(value, list | dict | set | bytearray):
                raise UsageError(
                    f"{one.__name__}.{name} is one {type(value).__name__} for all objects of the"
                    f" class: set self.{name} in __init__, or annotate it as a ClassVar"
                )
