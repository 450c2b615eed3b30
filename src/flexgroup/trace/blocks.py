"""Blocks of the event log as numpy columns, by kind."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from flexgroup.trace import schema
from flexgroup.trace.rows import COLUMNS, TYPES

Column = NDArray[np.signedinteger]
Block = dict[str, Column]

_DTYPES = {"i": "<i4", "q": "<i8"}


def blocks_by_kind(columns: list[bytes]) -> Iterator[tuple[str, Block]]:
    """Yield each kind of event that occurs in drained columns, with its rows by column."""
    block: Block = {
        name: np.frombuffer(column, dtype=_DTYPES[type_])
        for name, type_, column in zip(COLUMNS, TYPES, columns, strict=True)
    }
    kinds = np.unique(block["kind"])
    if len(kinds) == 1:
        yield schema.KINDS[kinds[0]], block
        return
    for number in kinds:
        chosen = np.flatnonzero(block["kind"] == number)
        yield schema.KINDS[number], {name: column[chosen] for name, column in block.items()}
