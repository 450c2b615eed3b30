"""HTML and SVG as text that cannot be escaped from: what is not markup is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

VOID = frozenset({"br", "col", "hr", "input", "link", "meta"})
"""The elements of HTML that have no end tag."""

# Legal in a name that a stranger chose, and not in a page.
NOT_IN_A_PAGE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")

REPLACEMENT = "\ufffd"

# Most of what is written needs no escape, which is cheaper to see than to do.
NEEDS_ESCAPE = re.compile(f"[&<>\"']|{NOT_IN_A_PAGE.pattern}")


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Attribute = str | int | float | None


def text(value: object) -> Markup:
    """Return the value as text in a page, or within the quotes of an attribute."""
    if isinstance(value, Markup):
        return value
    words = str(value)
    if NEEDS_ESCAPE.search(words) is None:
        return Markup(words)
    return Markup(escape(NOT_IN_A_PAGE.sub(REPLACEMENT, words), quote=True))


def number(value: float) -> str:
    """Write a coordinate; a tenth of a pixel is as fine as one can see."""
    return f"{value:.1f}".removesuffix(".0")


def element(name: str, /, *children: object, **attributes: Attribute) -> Markup:
    """Return an element; `class_` is its class, `aria_label` becomes aria-label, None goes."""
    opening = name
    for key, value in attributes.items():
        if value is not None:
            written = number(value) if isinstance(value, float) else text(value)
            opening += f' {key.rstrip("_").replace("_", "-")}="{written}"'
    if name in VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{join(children)}</{name}>")


def join(parts: Iterable[object], between: str = "") -> Markup:
    return Markup(between.join(text(part) for part in parts))
