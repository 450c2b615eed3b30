"""The events that checks look at, as rows of one table, and back as a history in memory.

A message's identity is packed in one integer, as everywhere (see `flexgroup.core.message`).
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from flexgroup.trace import schema
from flexgroup.trace.history import History, Ints, RunFacts
from flexgroup.trace.reader import history_of, ints, names_in

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

    def of_kind(kind: str) -> pa.Table:
        return rows.filter(pc.field("event") == CODES[kind])

    names: dict[int, str] = {}
    for kind in schema.NAMED:
        names |= names_in(of_kind(kind))
    return replace(history_of(of_kind, about), message_name=names.get)


def integers(rows: pa.Table, name: str) -> Ints:
    """Return a column of rows, with NOTHING in place of nulls."""
    return ints(rows, name, NOTHING)
