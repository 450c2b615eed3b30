"""Prefix order of large runs in which some message was not delivered everywhere.

Processes p and q that agree on the order of what both delivered violate prefix order if and only
if p delivered a message a that q missed, and q delivered a message b, addressed to both, that p
missed or delivered after a. It suffices to look at the first a: what is after a later one is after
the first. So for p and q there are three messages that matter: the first that p delivered and q
missed, the same the other way round, and the last that both delivered. Each part of the messages
has a first and a last one, and those of the run are the least and the largest of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as f

from flexgroup.pipeline.in_memory.packed_rows import Batches
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import spark_schema
from flexgroup.pipeline.verify.layout import Layout
from flexgroup.pipeline.verify.message_parts import by_message, partial_histories
from flexgroup.properties.indexed_history import NONE, IndexedHistory
from flexgroup.properties.kernels.pairs_of_processes import first_skipped, last_shared
from flexgroup.properties.prefix_order import SkippedFirst
from flexgroup.trace.history import Ints

FOUND = pa.schema(
    {
        **dict.fromkeys(("number", "process", "other"), pa.int32()),
        **dict.fromkeys(("step", "message", "time"), pa.int64()),
    }
)
"""What a row tells of a pair of processes: the step at which the one delivered a message, and the
time at which it or, if both delivered it, the other did."""

Pair = tuple[int, int]


class _Seen(NamedTuple):
    step: int
    message: int
    time: int


def skipped_messages(
    traces: TraceSet, layouts: Sequence[Layout], numbers: Collection[int]
) -> dict[int, SkippedFirst]:
    """Return what processes of these runs skipped."""
    wanted = {each.plan.number: each for each in layouts if each.plan.number in numbers}
    if not wanted:
        return {}
    first = _found(traces, wanted, None)
    last = _found(traces, wanted, first)
    return {number: _judged(first[number], last[number]) for number in wanted}


def _judged(first: Mapping[Pair, _Seen], last: Mapping[Pair, _Seen]) -> SkippedFirst:
    """Return the pairs that violate the order, and the violation that was complete first."""
    found: list[tuple[tuple[int, ...], Pair, int, int]] = []
    for (process, other), skipped in first.items():
        shared = last.get((process, other))
        if shared and shared.step > skipped.step:
            rank = (max(skipped.time, shared.time), 0, other, process)
            found.append((rank, (process, other), skipped.message, shared.message))
        back = first.get((other, process))
        if back:
            rank = (max(skipped.time, back.time), 1, process, other)
            found.append((rank, (process, other), skipped.message, back.message))
    pairs = sorted({(min(pair), max(pair)) for _, pair, _, _ in found})
    if not found:
        return SkippedFirst(pairs)
    _, (process, other), skipped_message, overtaking = min(found)
    return SkippedFirst(pairs, process, other, skipped_message, overtaking)


def _found(
    traces: TraceSet,
    layouts: Mapping[int, Layout],
    wanted: Mapping[int, Mapping[Pair, _Seen]] | None,
) -> dict[int, dict[Pair, _Seen]]:
    """Return, for pairs of processes, the first message that the one delivered and the other
    missed; or, of the wanted pairs, the last that both delivered."""
    plans = {number: layout.plan for number, layout in layouts.items()}
    ends = {
        number: np.array(list(pairs), dtype=np.int64).reshape(-1, 2).T
        for number, pairs in (wanted or {}).items()
    }

    def stage(batches: Batches) -> Batches:
        for number, part in partial_histories(batches, plans):
            chosen = (ends[number][0], ends[number][1]) if wanted is not None else None
            yield from _of_part(number, IndexedHistory(part), chosen)

    deliveries = sum(layout.deliveries for layout in layouts.values())
    pick = f.min if wanted is None else f.max
    rows = (
        by_message(traces, layouts, deliveries)
        .mapInArrow(stage, spark_schema(FOUND))
        .groupBy("number", "process", "other")
        .agg(pick(f.struct("step", "message", "time")).alias("seen"))
    )
    found: dict[int, dict[Pair, _Seen]] = {number: {} for number in layouts}
    for row in rows.collect():
        found[row.number][row.process, row.other] = _Seen(*row.seen)
    return found


def _of_part(
    number: int, run: IndexedHistory, wanted: tuple[Ints, Ints] | None
) -> Iterator[pa.RecordBatch]:
    copies, deliveries = run.copies, run.history.deliveries
    delivered = copies.row != NONE
    step = np.full(len(copies.row), NONE, dtype=np.int64)
    step[delivered] = deliveries.step[copies.row[delivered]]
    if wanted is None:
        one, other = first_skipped(copies.message, copies.process, step)
        timed = one
    else:
        one, other = last_shared(copies.message, copies.process, step, wanted)
        timed = other
    columns = (
        np.full(len(one), number),
        copies.process[one],
        copies.process[other],
        step[one],
        run.identities[copies.message[one]],
        deliveries.time[copies.row[timed]],
    )
    arrays = [
        pa.array(column).cast(kind) for column, kind in zip(columns, FOUND.types, strict=True)
    ]
    yield pa.RecordBatch.from_arrays(arrays, schema=FOUND)
