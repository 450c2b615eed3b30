"""The events that checks look at, as rows of one table, and back as a history in memory.

A message's identity is packed in one integer, as everywhere (see `flexgroup.core.message`).
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from flexgroup.trace import schema
from flexgroup.trace.history import History, Ints, RunFacts
from flexgroup.trace.reader import history_of, ints

CODES = {kind: code for code, kind in enumerate(schema.KINDS)}

NOTHING = -1
"""Stands in place of a null."""

EVENT_ROWS = pa.schema(
    [
        pa.field("event", pa.int8()),
        pa.field("process", pa.int32()),
        pa.field("step", pa.int64()),
        pa.field("time", pa.int64()),
        pa.field("message", pa.int64()),
        pa.field("destinations", pa.list_(pa.int32())),
    ]
)
"""The events of one run: `event` is the code of a kind; what only packets and views have is left
out."""


def history_of_rows(rows: pa.Table, about: RunFacts) -> History:
    """Return the history that rows of events tell: a whole run, or what concerns some messages."""
    return history_of(lambda kind: rows.filter(pc.field("event") == CODES[kind]), about)


def integers(rows: pa.Table, name: str) -> Ints:
    """Return a column of rows, with NOTHING in place of nulls."""
    return ints(rows, name, NOTHING)
