"""Tables on a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text


def table(
    columns: Sequence[str],
    rows: Iterable[Iterable[object]],
    right: Collection[str] = (),
    **looks: Any,
) -> Table:
    """Return a table of these columns, those of numbers being aligned on the right."""
    shown = Table(box=box.SIMPLE_HEAD, **looks)
    for column in columns:
        shown.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        # Names come from other people: as they are, never as markup.
        shown.add_row(*(Text(str(value)) for value in row))
    return shown
