"""The rows of tables on the pages of protocols that say what was explored, and their scopes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from flexgroup.worlds.explorer.scope import Scope

from .variants_replicated import between_groups

PAGES = Path(__file__).resolve().parents[2] / "docs" / "protocols"

MOST_STATES = 10_000

EXPLORED = r"\| `[^|]+` \| [\d,]+ \| [\d{}, ]+ \| (fifo|reordering) \|"
"""Rows that begin with a stack, sizes of groups, messages by these, and channels."""


def rows_of(*pages: str, like: str = EXPLORED) -> list[list[str]]:
    """The cells of the rows of these pages that begin like this."""
    return [
        [cell.strip(" `") for cell in line.strip().strip("|").split("|")]
        for page in pages
        for line in (PAGES / page).read_text(encoding="utf-8").splitlines()
        if re.match(like, line)
    ]


def of_size(rows: list[list[str]], column: int, small: bool) -> list[list[str]]:
    """Those whose states, which this column tells, are few, or many."""
    return [row for row in rows if (int(row[column].replace(",", "")) < MOST_STATES) is small]


def scope_of(row: list[str], **bounds: Any) -> Scope:
    """The groups, messages and channels of a row."""
    _, sizes, messages, channels, *_ = row
    groups = [tuple(map(int, text.split(","))) for text in re.findall(r"\{([\d,]+)\}", messages)]
    return between_groups(
        [int(size) for size in sizes.split(",")], *groups, fifo=channels == "fifo", **bounds
    )
