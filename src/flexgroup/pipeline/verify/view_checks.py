"""Virtual synchrony of large runs: with all views at hand, each message shows by itself who
missed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f

from flexgroup.pipeline.in_memory.event_rows import history_of_rows
from flexgroup.pipeline.in_memory.packed_rows import Batches
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import spark_schema
from flexgroup.pipeline.verify.event_rows import EXPLAINED_COLUMNS, FAULTS, event_rows
from flexgroup.pipeline.verify.layout import Layout
from flexgroup.pipeline.verify.message_parts import by_message, partial_histories
from flexgroup.properties.indexed_history import IndexedHistory
from flexgroup.properties.virtual_synchrony import NAME, missing
from flexgroup.trace.history import History
from flexgroup.trace.schema import VIEW

FOUND = pa.schema(
    {
        "number": pa.int32(),
        "deliveries": pa.int64(),
        "changes": pa.int64(),
        "missing": pa.int64(),
        "first": pa.list_(pa.int64()),
    }
)


@dataclass
class ViewFindings:
    """What is known of virtual synchrony in a run that has views."""

    deliveries: int = 0
    """Those before a change of view."""
    changes: int = 0
    missing: int = 0
    first: tuple[int, ...] = ()
    """The first delivery that someone missed: its time, process, step and message."""


def view_findings(traces: TraceSet, layouts: Sequence[Layout]) -> dict[int, ViewFindings]:
    """Return what is found in those of these runs that have views and are to be checked."""
    wanted = {each.plan.number: each for each in layouts if NAME in each.plan.properties}
    if not wanted or VIEW not in traces.kinds:
        return {}
    views = _with_views(traces, wanted)
    if not views:
        return {}

    def stage(batches: Batches) -> Batches:
        for number, part in partial_histories(batches, views):
            yield _found(number, part, views[number])

    deliveries = sum(wanted[number].deliveries for number in views)
    rows = by_message(traces, views, deliveries).mapInArrow(stage, spark_schema(FOUND))
    found = {number: ViewFindings() for number in views}
    for row in rows.collect():
        known = found[row.number]
        known.deliveries += row.deliveries
        known.changes = row.changes
        known.missing += row.missing
        if row.first:
            first = tuple(row.first)
            known.first = min(known.first or first, first)
    return found


def _with_views(traces: TraceSet, layouts: dict[int, Layout]) -> dict[int, History]:
    """Return the views and crashes of the runs that have any views."""
    events = event_rows(traces, (*FAULTS, VIEW), EXPLAINED_COLUMNS)
    rows = events.where(f.col("number").isin(list(layouts))).toArrow()
    histories = {
        number: history_of_rows(rows.filter(pc.field("number") == number), layout.plan)
        for number, layout in layouts.items()
    }
    return {number: told for number, told in histories.items() if len(told.views.process)}


def _found(number: int, part: History, views: History) -> pa.RecordBatch:
    run = IndexedHistory(replace(part, crashes=views.crashes, views=views.views))
    missed = missing(run)
    first = []
    if len(missed.causes):
        deliveries, rows = run.history.deliveries, missed.row[missed.causes]
        row = rows[np.argmin(deliveries.time[rows])]
        columns = (deliveries.time, deliveries.process, deliveries.step, deliveries.message)
        first = [int(column[row]) for column in columns]
    found = {
        "number": number,
        "deliveries": len(missed.row),
        "changes": len(missed.stays.process),
        "missing": len(missed.lines),
        "first": first,
    }
    return pa.RecordBatch.from_pylist([found], FOUND)
