"""What a valid trace is: the rules that the validator, the checks and the measures share.

Here are those about single rows of events. Those about all events of a run together are in
`flexgroup.trace.run_events`, those about files in `flexgroup.trace.run_files`, and those about the
row of a run in `flexgroup.trace.run`. Spark has the rules about rows in a form of its own, made of
the same constants (`flexgroup.pipeline.reading.guards`); tests compare the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from flexgroup.core.errors import UsageError
from flexgroup.core.message import ORIGIN_BITS, ORIGIN_MASK
from flexgroup.trace import schema
from flexgroup.trace.history import Ints

Flags = NDArray[np.bool_]

NATURAL = (
    "process", "step", "origin", "seq", "peer", "depth",
    "header_bytes", "payload_bytes", "sent", "queued",
)  # fmt: skip
"""Columns whose numbers are never negative."""

LARGEST = {"origin": ORIGIN_MASK, "seq": (1 << (63 - ORIGIN_BITS)) - 1}
"""The largest numbers that fit into a message's identity, which is packed into one integer: larger
ones would pass for another message."""

LIST = "destinations"


class ListRule(StrEnum):
    """What the destinations of a multicast must not be."""

    NONE = "without a destination"
    EMPTY = "empty entries"
    NEGATIVE = "negative entries"
    TWICE = "with a destination twice"


SEE = "`flexgroup validate` tells everything that is wrong with a trace set"


@dataclass(frozen=True)
class BrokenRule:
    """A rule that some rows do not keep."""

    column: str
    reason: str
    rows: Flags


def rows_told(number: int) -> str:
    return "1 row" if number == 1 else f"{number} rows"


def is_empty_in(column: str, rows: str) -> str:
    return f"column '{column}' is empty in {rows}"


def broken_rules(kind: str, rows: pa.Table | pa.RecordBatch) -> Iterator[BrokenRule]:
    """Yield the rules about single rows that events of this kind do not keep, as far as their
    columns are there."""
    for name in schema.required_columns(kind):
        if name in rows.schema.names and rows.column(name).null_count:
            column = rows.column(name)
            empty = rows_told(column.null_count)
            yield BrokenRule(name, is_empty_in(name, empty), _flags(column.is_null()))
    for name in NATURAL:
        if name in rows.schema.names:
            yield from _beyond_bounds(name, rows.column(name))
    if kind == schema.MULTICAST and LIST in rows.schema.names:
        lists = rows.column(LIST)
        chunked = isinstance(lists, pa.ChunkedArray)
        yield from _broken_lists(lists.combine_chunks() if chunked else lists)


def _beyond_bounds(name: str, column: pa.Array | pa.ChunkedArray) -> Iterator[BrokenRule]:
    low, high = (value.as_py() for value in pc.min_max(column).values())
    if low is not None and low < 0:
        negative = _flags(pc.less(column, 0))
        told = rows_told(int(np.count_nonzero(negative)))
        yield BrokenRule(
            name, f"column '{name}' is negative in {told}, the least is {low}", negative
        )
    most = LARGEST.get(name)
    if most is not None and high is not None and high > most:
        reason = f"column '{name}' goes up to {high}, at most {most} is possible"
        yield BrokenRule(name, reason, _flags(pc.greater(column, most)))


def _broken_lists(lists: pa.ListArray) -> Iterator[BrokenRule]:
    none = _flags(pc.equal(lists.value_lengths(), 0))
    if none.any():
        number = rows_told(int(np.count_nonzero(none)))
        yield BrokenRule(LIST, f"{number} {ListRule.NONE}", none)
    targets = lists.flatten()
    owner = lists.value_parent_indices().to_numpy(zero_copy_only=False)
    target = targets.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    missing = _flags(targets.is_null())
    for rule, wrong in ((ListRule.EMPTY, missing), (ListRule.NEGATIVE, (target < 0) & ~missing)):
        if wrong.any():
            reason = f"'{LIST}' has {int(np.count_nonzero(wrong))} {rule}"
            yield BrokenRule(LIST, reason, _of_rows(owner[wrong], lists))
    together = owner[1:] == owner[:-1]
    if (together & (target[1:] <= target[:-1])).any():  # otherwise they ascend, as they should
        order = np.lexsort((target, owner))
        owner, target = owner[order], target[order]
        twice = _of_rows(owner[1:][together & (target[1:] == target[:-1])], lists)
        if twice.any():
            number = rows_told(int(np.count_nonzero(twice)))
            yield BrokenRule(LIST, f"{number} {ListRule.TWICE}", twice)


def _of_rows(owner: Ints, lists: pa.ListArray) -> Flags:
    flags = np.zeros(len(lists), dtype=np.bool_)
    flags[owner] = True
    return flags


def _flags(column: pa.Array | pa.ChunkedArray) -> Flags:
    flags: Flags = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return flags


def refuse_broken_rules(path: Path, kind: str, rows: pa.Table | pa.RecordBatch) -> None:
    """Raise a UsageError if some of these rows, which this file has, do not keep a rule."""
    for broken in broken_rules(kind, rows):
        raise UsageError(f"'{path}': {broken.reason}; {SEE}")
