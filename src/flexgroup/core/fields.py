"""Fields, declared once: what follows from the annotations of a packet, a record or an effect.

A class says `m: Message`, one line for each field, and perhaps a default. Its constructor, the way
to copy it and what the codec must know of it are derived from that, as Python source text. A class
that Python creates executes the text at once. For those that mypyc compiles, the same text is
written into a copy of the source before (`flexgroup._written_out`), so both forms run the same.

This module is loaded by the build as well, and imports nothing of the package.
"""

from __future__ import annotations

import ast
import inspect
import typing
from collections.abc import Callable, Sequence
from copy import deepcopy
from keyword import iskeyword
from typing import Any, Final, NamedTuple

# The kinds of fields that a packet may have, and how they are annotated.
INT: Final = 0
ID: Final = 1
STAMP: Final = 2
INTS: Final = 3
TEXT: Final = 4
MESSAGE: Final = 5
MESSAGES: Final = 6
BYTES: Final = 7
ALL_BYTES: Final = 8
PACKET: Final = 9
PACKETS: Final = 10

Fields = tuple[tuple[str, int], ...]

KINDS: Final = {
    "int": INT,
    "MessageId": ID,
    "Stamp": STAMP,
    "tuple[int, ...]": INTS,
    "str": TEXT,
    "Message": MESSAGE,
    "tuple[Message, ...]": MESSAGES,
    "bytes": BYTES,
    "tuple[bytes, ...]": ALL_BYTES,
    "Packet": PACKET,
    "tuple[Packet, ...]": PACKETS,
}

# What a copy of a record shares with the original, because it never changes.
_SHARED = frozenset("None bool bytes int str Message MessageId Packet Stamp".split())
_IMMUTABLE_IF_ITEMS_ARE = frozenset("FrozenSet Optional Tuple Union frozenset tuple".split())
_CONTAINERS = frozenset("Dict List Set dict list set".split())
_EMPTY: dict[type, str] = {dict: "{}", list: "[]", set: "set()"}


class Field(NamedTuple):
    """One field, as source text: what it is, and what it is if the constructor is not told."""

    name: str
    annotation: str
    default: str | None = None
    is_fresh: bool = False
    """The default can change, so each instance gets its own."""


def constructor(fields: Sequence[Field]) -> str:
    """The source of `__init__`, in one line."""
    parameters = ["self"]
    body = []
    for name, annotation, default, is_fresh in fields:
        if is_fresh:
            parameters.append(f"{name}: {annotation} | None = None")
            body.append(f"self.{name} = {default} if {name} is None else {name}")
        else:
            parameters.append(f"{name}: {annotation}" + (f" = {default}" if default else ""))
            body.append(f"self.{name} = {name}")
    return f"def __init__({', '.join(parameters)}) -> None: {'; '.join(body) or 'pass'}"


def copier(owner: str, fields: Sequence[Field], check: str = "") -> str:
    """The source of a record's `copy`, in one line, which may begin with a check."""
    copies = [_copy_of(f"self.{field.name}", field.annotation) for field in fields]
    return f"def copy(self) -> {owner}: {check}return {owner}({', '.join(copies)})"


def kind_of(owner: str, name: str, annotation: str) -> int:
    kind = KINDS.get(annotation)
    if kind is None:
        allowed = ", ".join(KINDS)
        raise TypeError(
            f"{owner}.{name} is declared as {annotation}; a field of a packet is one of {allowed}"
        )
    return kind


def check(owner: str, fields: Sequence[Field]) -> None:
    """Refuse what no constructor can be derived from."""
    names = [field.name for field in fields]
    for place, field in enumerate(fields):
        if field.name == "self" or iskeyword(field.name):
            raise TypeError(
                f"{owner}.{field.name} cannot be a field, since no parameter of the constructor"
                " can have this name; choose another one"
            )
        if field.name in names[:place]:
            raise TypeError(f"{owner}.{field.name} is declared twice, in a base class already")
        if field.default is None and place and fields[place - 1].default is not None:
            raise TypeError(
                f"{owner}.{field.name} has no default, but {names[place - 1]} before it has one;"
                " put the fields without a default first"
            )
        if field.is_fresh and _may_be_none(ast.parse(field.annotation, mode="eval").body):
            raise TypeError(
                f"{owner}.{field.name} may be None, and its default is made anew for each instance;"
                " let None be the default, or no value at all"
            )


def is_field(annotation: str) -> bool:
    return not annotation.rpartition("typing.")[2].startswith(("ClassVar", "Final"))


def derive(cls: Any, kinds: bool = False, copies: Callable[[Any], Any] | None = None) -> None:
    """Give a class that Python has just created what follows from its annotations.

    With `kinds` it is a packet, and gets FIELDS; with a function that `copies` values it is a
    record, and gets `copy`. A compiled class has all of that, and its annotations are gone.
    """
    if "__mypyc_attrs__" in cls.__dict__:
        return
    owner = cls.__name__
    scope: dict[str, Any] = {owner: cls, "deeply_copied": copies, "deepcopy": deepcopy}
    fields = list(getattr(cls, "_declared", ()))
    scope.update(getattr(cls, "_defaults", ()))
    for name, annotation in inspect.get_annotations(cls).items():
        text = _text_of(annotation)
        if is_field(text):
            fields.append(Field(name, text, *_default_of(cls, name, scope)))
    check(owner, fields)
    if "__init__" in cls.__dict__:
        raise TypeError(
            f"{owner} has an __init__ of its own; declare its fields as annotations instead, and"
            " the constructor takes them in order. Other ways to make one are class methods"
        )
    cls._declared = tuple(fields)
    cls._defaults = {name: scope[name] for name in scope if name.startswith("default_of_")}
    source = f"from __future__ import annotations\n{constructor(fields)}\n"
    if copies is not None:
        scope["declared_only"] = declared_only
        check_names = f"len(self.__dict__) == {len(fields)} or declared_only(self); "
        is_open = cls.__dictoffset__ != 0  # it has no slots, and takes any attribute
        source += copier(owner, fields, check_names if is_open else "")
    exec(source, scope)
    cls.__init__ = scope["__init__"]
    if copies is not None:
        cls.copy = scope["copy"]
    if kinds:
        cls.FIELDS = tuple((field.name, _kind_in(cls, field)) for field in fields)


def names_of(cls: Any) -> tuple[str, ...]:
    """The names of the fields that a class declares and inherits."""
    if hasattr(cls, "_declared"):
        return tuple([field.name for field in cls._declared])
    return tuple(getattr(cls, "__mypyc_attrs__", ()))


def declared_only(record: Any) -> None:
    """Refuse a record with an attribute that is no field: its copy would silently lack it."""
    cls = type(record)
    for name in sorted(record.__dict__.keys() - names_of(cls)):
        raise TypeError(
            f"{cls.__name__}.{name} is not declared: an attribute of a record is a field, and a"
            " copy, a comparison or a fingerprint would leave this one out; annotate it"
        )


def _text_of(annotation: object) -> str:
    """The annotation as it was written, or at least in words that mean the same."""
    if isinstance(annotation, str):
        return annotation
    if typing.get_origin(annotation) is typing.Annotated:
        return str(typing.get_args(annotation)[1])  # MessageId and Stamp carry their names
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _kind_in(cls: type, field: Field) -> int:
    """The kind of a field, whose annotation may be another name for one that is known."""
    annotation = field.annotation
    if annotation not in KINDS:
        # The class is being created: the frame that does so knows the names of its module.
        frame = inspect.currentframe()
        while frame is not None and frame.f_globals.get("__name__") != cls.__module__:
            frame = frame.f_back
        names = {} if frame is None else {**frame.f_globals, **frame.f_locals}
        annotation = _text_of(names.get(annotation, annotation))
    return kind_of(cls.__name__, field.name, annotation)


def _default_of(cls: type, name: str, scope: dict[str, Any]) -> tuple[str | None, bool]:
    """The source of a default, for code that runs in this scope, and whether it is made anew."""
    if name not in cls.__dict__:
        return None, False
    value = cls.__dict__[name]
    delattr(cls, name)
    if type(value) in _EMPTY and not value:
        return _EMPTY[type(value)], True
    scope[f"default_of_{name}"] = value
    if type(value) in _EMPTY:
        return f"deepcopy(default_of_{name})", True
    if hasattr(value, "copy") and not isinstance(value, frozenset):
        return f"default_of_{name}.copy()", True
    return f"default_of_{name}", False


def _copy_of(value: str, annotation: str) -> str:
    """The source of a copy of this value, which shares no more than what never changes."""
    type_ = ast.parse(annotation, mode="eval").body
    if _is_shared(type_):
        return value
    if isinstance(type_, ast.Subscript):
        is_container = _name_of(type_.value) in _CONTAINERS
        if is_container and all(map(_is_shared, _arguments(type_))):
            return f"{value}.copy()"
    return f"deeply_copied({value})"


def _is_shared(type_: ast.expr) -> bool:
    if isinstance(type_, ast.BinOp):
        return _is_shared(type_.left) and _is_shared(type_.right)
    if isinstance(type_, ast.Subscript):
        is_immutable = _name_of(type_.value) in _IMMUTABLE_IF_ITEMS_ARE
        return is_immutable and all(map(_is_shared, _arguments(type_)))
    return _name_of(type_) in _SHARED


def _may_be_none(type_: ast.expr) -> bool:
    if isinstance(type_, ast.BinOp):
        return _may_be_none(type_.left) or _may_be_none(type_.right)
    if isinstance(type_, ast.Subscript):
        name = _name_of(type_.value)
        return name == "Optional" or (name == "Union" and any(map(_may_be_none, _arguments(type_))))
    return _name_of(type_) == "None"


def _arguments(type_: ast.Subscript) -> list[ast.expr]:
    inside = type_.slice
    return inside.elts if isinstance(inside, ast.Tuple) else [inside]


def _name_of(type_: ast.expr) -> str:
    if isinstance(type_, ast.Name):
        return type_.id
    if isinstance(type_, ast.Attribute):
        return type_.attr
    if isinstance(type_, ast.Constant):
        return "None" if type_.value in (None, ...) else str(type_.value)
    return ""
