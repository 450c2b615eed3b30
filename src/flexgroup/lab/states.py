"""The state of a layer in words: each attribute, with messages and timestamps by their names.

State is integers and containers of them. Which of them are messages and which timestamps, only the
annotations in the source of the layer tell; where there is no source, numbers are shown.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from flexgroup.core.layer import Layer, Record
from flexgroup.core.message import Message, MessageId, Packet, clock_of, name_of, process_of
from flexgroup.core.state import state_names
from flexgroup.testing.packets_in_words import naming, packet_in_words

Letters = Mapping[MessageId, str]

LONGEST = 400
"""Characters of a value that are shown."""

NOTHING = "-"


def attributes(part: Layer | Record, letters: Letters) -> list[tuple[str, str]]:
    """Return the names and the values of all that a layer or a record holds."""
    types = _annotations(type(part).__module__, type(part).__name__)
    declared = list(types)
    names = sorted(
        state_names(part),
        key=lambda name: declared.index(name) if name in types else len(declared),
    )
    return [
        (name.strip("_"), _short(written(getattr(part, name), types.get(name), letters)))
        for name in names
    ]


def written(value: object, annotation: ast.expr | None, letters: Letters) -> str:
    """Return a value in words, as its annotation says that it is meant."""
    kind, inner = _taken_apart(annotation)
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case int():
            return _number(value, kind, letters)
        case bytes():
            return f"{len(value)} bytes"
        case Message():
            payload = value.payload
            packet = (
                f" [{packet_in_words(payload, naming(letters))}]"
                if isinstance(payload, Packet)
                else ""
            )
            return f"{letters.get(value.id) or name_of(value.id)}{packet}"
        case Packet():
            return packet_in_words(value, naming(letters))
        case dict():
            first, second = (*inner, None, None)[:2]
            return _listed(
                f"{written(key, first, letters)}: {written(item, second, letters)}"
                for key, item in value.items()
            )
        case tuple() if len(inner) == len(value) and not _is_ellipsis(inner[-1:]):
            parts = zip(value, inner, strict=True)
            return f"({', '.join(written(item, each, letters) for item, each in parts)})"
        case list() | tuple() | set() | frozenset():
            ordered = sorted(value, key=_rank) if isinstance(value, set | frozenset) else value
            each = inner[0] if inner else None
            return _listed(written(item, each, letters) for item in ordered)
        case Record() | Layer():
            parts_ = ", ".join(f"{name} {text}" for name, text in attributes(value, letters))
            return f"{type(value).__name__}({parts_})"
    return str(value)


def _rank(value: object) -> tuple[bool, int, str]:
    """Numbers by their size, and whatever else a set holds in some order that lasts."""
    return not isinstance(value, int), value if isinstance(value, int) else 0, repr(value)


def _number(value: int, kind: str, letters: Letters) -> str:
    if kind == "MessageId":
        return letters.get(value) or name_of(value)
    if kind == "Stamp":
        return f"({clock_of(value)},{process_of(value)})"
    return str(value)


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words) or NOTHING


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


def _is_ellipsis(last: list[ast.expr | None]) -> bool:
    return bool(last) and isinstance(last[0], ast.Constant) and last[0].value is ...


def _taken_apart(annotation: ast.expr | None) -> tuple[str, list[ast.expr | None]]:
    """Return the name of a type and what stands in its brackets."""
    if isinstance(annotation, ast.BinOp):  # X | None
        return _taken_apart(annotation.left)
    if isinstance(annotation, ast.Subscript):
        inside = annotation.slice
        parts = list(inside.elts) if isinstance(inside, ast.Tuple) else [inside]
        return _taken_apart(annotation.value)[0], [*parts]
    if isinstance(annotation, ast.Name):
        return annotation.id, []
    return "", []


@cache
def _annotations(module: str, name: str) -> dict[str, ast.expr | None]:
    """Return the attributes that a class and its constructor set, in their order, with the
    annotations that they have there."""
    found: dict[str, ast.expr | None] = {}
    for node in _body(module, name):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = node.annotation
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            for inner in node.body:
                if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Attribute):
                    found[inner.target.attr] = inner.annotation
                elif isinstance(inner, ast.Assign) and isinstance(inner.targets[0], ast.Attribute):
                    found[inner.targets[0].attr] = None
    return found


def _body(module: str, name: str) -> list[ast.stmt]:
    """Return the statements of a class, from the source beside its module, compiled or not."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return []
    source = Path(file).with_name(f"{module.rpartition('.')[2]}.py")
    try:
        tree = ast.parse(source.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return []
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return next((node.body for node in classes if node.name == name), [])
