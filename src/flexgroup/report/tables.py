"""HTML tables that scroll by themselves and can be sorted by a click."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from flexgroup.diagram.markup import Markup, element


@dataclass(frozen=True)
class Cell:
    """What is shown, by what it is sorted if that differs, and how it looks."""

    shown: object
    key: float | None = None
    kind: str | None = None


@dataclass(frozen=True)
class Column:
    name: str
    kind: str | None = None
    """A class of its cells: `number`, `long`, `nowrap`."""


def table(
    caption: str,
    columns: Sequence[Column],
    rows: Iterable[Sequence[object]],
    sortable: bool = True,
    headings: int = 1,
) -> Markup:
    """The first `headings` cells of a row say what the row is about."""
    head = [element("th", c.name, scope="col", class_=c.kind) for c in columns]
    body = [
        element("tr", *(_cell(value, columns[i], i < headings) for i, value in enumerate(row)))
        for row in rows
    ]
    whole = element(
        "table",
        element("caption", element("span", caption)),
        element("thead", element("tr", *head)),
        element("tbody", *body),
        class_="sortable" if sortable else None,
    )
    # What scrolls must be reachable by the keyboard, and say what it is.
    return element("div", whole, class_="scroll", tabindex=0, role="region", aria_label=caption)


def _cell(value: object, column: Column, heading: bool) -> Markup:
    cell = value if isinstance(value, Cell) else Cell(value)
    kinds = " ".join(kind for kind in (column.kind, cell.kind) if kind)
    return element(
        "th" if heading else "td",
        "" if cell.shown is None else cell.shown,
        scope="row" if heading else None,
        class_=kinds or None,
        data_key=None if cell.key is None else repr(float(cell.key)),
    )
