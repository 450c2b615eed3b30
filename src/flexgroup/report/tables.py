"""HTML tables that scroll by themselves and can be sorted by a click, and the numbers in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10
from typing import Any

import pyarrow as pa

from flexgroup.diagram.markup import Markup, element
from flexgroup.metrics.catalogue import HALF_WIDTH, Metric


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
    """The class of its cells: `number`, `long` or `nowrap`."""


def table(
    caption: str,
    columns: Sequence[Column],
    rows: Iterable[Sequence[object]],
    sortable: bool = True,
    headings: int = 1,
) -> Markup:
    """Draw a table; the first `headings` cells of a row say what the row is about."""
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


def more_in(name: str, shown: Sequence[object], whole: pa.Table) -> str:
    """Return what a caption says of rows that only the file has; nothing, if all are shown."""
    more = whole.num_rows - len(shown)
    return f": the first {len(shown)}, and {more} more in tables/{name}" if more else ""


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


def value_of(metric: Metric, row: Mapping[str, Any]) -> float | None:
    """Return the value of a metric in a row of a table, in the unit that is shown."""
    return metric.shown(row.get(metric.name))


def half_width_of(metric: Metric, row: Mapping[str, Any]) -> float:
    """Return half the width of its confidence interval, 0 if there is none."""
    return metric.shown(row.get(metric.name + HALF_WIDTH)) or 0.0


def metric_cell(metric: Metric, row: Mapping[str, Any]) -> Cell:
    """Return the cell of a metric in a table."""
    value, half = value_of(metric, row), half_width_of(metric, row)
    if value is None:
        return Cell("")
    return Cell(interval(value, half) if half else number_text(value), value)


def number_text(value: float) -> str:
    """Write a number as in a table: four digits that count, thousands apart."""
    if not isfinite(value):
        return "-"
    if value != 0 and abs(value) < 1e-4:
        return f"{value:.2e}"
    written = f"{value:,.{_decimals(value)}f}"
    return written.rstrip("0").rstrip(".") if "." in written else written


def interval(value: float, half: float) -> str:
    """Write a mean and half the width of its confidence interval, to the same decimal."""
    decimals = max(_decimals(value), 1 - floor(log10(half)) if 0 < half < 0.1 else 0)
    return f"{value:,.{decimals}f} ± {half:,.{decimals}f}"


def _decimals(value: float) -> int:
    return max(0, 3 - floor(log10(abs(value)))) if value else 0
