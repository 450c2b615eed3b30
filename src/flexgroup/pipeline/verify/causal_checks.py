"""Causal order of large runs in which processes multicast after they delivered.

All slices are checked at the same time, each in a window (`causal_windows`), which decides as a
rule. If it does not, since messages were under way for longer than that, or causes form loops,
one task goes through the slices of the run in their order: it has one of them in memory at a
time, and the clocks that go from slice to slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.in_memory.packed_rows import (
    PACKED_ROWS,
    Batches,
    PackedRow,
    Stage,
    pack,
    packed_batch,
    unpack,
)
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import spark_schema
from flexgroup.pipeline.verify.causal_rows import CausalEvents, causal_events
from flexgroup.pipeline.verify.causal_windows import CausalRun, cannot_be_cut
from flexgroup.pipeline.verify.layout import Layout
from flexgroup.pipeline.verify.message_parts import MOST_TASKS, by_message, partial_histories
from flexgroup.pipeline.verify.timeline import timelines
from flexgroup.properties.causal_order import NAME
from flexgroup.properties.indexed_history import IndexedHistory
from flexgroup.properties.kernels.causal_graph import Copies, Heard, Sent
from flexgroup.properties.kernels.causal_slices import (
    CausalFindings,
    CausalScan,
    CausalSlice,
)
from flexgroup.trace.history import Ints

CELLS_A_PART = 2

MOST_BYTES = 1 << 29
"""How large a slice may be; a usual one has less than 100 MiB."""

MOST_STATE = 1 << 29
"""How many bytes may go from slice to slice."""

BATCH_BYTES = 1 << 26

SENT, COPIES, HEARD = "sent", "copies", "heard"
"""The kinds of packed rows: the columns of what they are named after."""

FOUND = pa.schema(
    [
        pa.field("number", pa.int32()),
        pa.field("wrong", pa.int64()),
        pa.field("earliest", pa.list_(pa.int64())),
        pa.field("unordered", pa.int64()),
        pa.field("least", pa.int64()),
        pa.field("found", pa.list_(pa.int64())),
        pa.field("clocks", pa.list_(pa.list_(pa.int64()))),
    ]
)


def answering_runs(traces: TraceSet, layouts: Sequence[Layout]) -> dict[int, CausalRun]:
    """Return those of these runs that are to be checked for causal order, and in which a process
    multicasts after it delivered something. For others it is FIFO order."""
    asked = {each.plan.number: each for each in layouts if NAME in each.plan.properties}
    if not asked:
        return {}
    bounds = {
        number: layout.bounds[CELLS_A_PART - 1 :: CELLS_A_PART] for number, layout in asked.items()
    }
    faulty = {number: layout.plan.faulty for number, layout in asked.items()}
    runs, place = {}, 0
    for number, timeline in timelines(traces, bounds, faulty).items():
        if timeline.answers:
            runs[number] = CausalRun(asked[number], timeline, place)
            place += runs[number].slices
    return runs


def causal_findings(traces: TraceSet, runs: Mapping[int, CausalRun]) -> dict[int, CausalFindings]:
    """Return what is found when a task goes through all slices of a run, as often as it must."""
    known: dict[int, dict[int, Ints]] = {number: {} for number in runs}
    found: dict[int, CausalFindings] = {}
    with _batches_of(traces.spark, BATCH_BYTES):
        while len(found) < len(runs):
            waiting = {number: run for number, run in runs.items() if number not in found}
            tasks = min(MOST_TASKS, len(waiting))
            in_order = _rows(traces, waiting).repartitionById(tasks, f.col("number") % tasks)
            scans = in_order.sortWithinPartitions("number", "place").mapInArrow(
                _scan(waiting, known), spark_schema(FOUND)
            )
            for row in scans.collect():
                if row.found:
                    clocks = (np.array(clock, dtype=np.int64) for clock in row.clocks)
                    known[row.number].update(zip(row.found, clocks, strict=True))
                else:
                    found[row.number] = _findings(row)
    return found


@contextmanager
def _batches_of(spark: SparkSession, size: int) -> Iterator[None]:
    """Let Python get batches of so many bytes: a task is not to have all its rows at once."""
    name = "spark.sql.execution.arrow.maxBytesPerBatch"
    before = spark.conf.get(name)
    spark.conf.set(name, str(size))
    try:
        yield
    finally:
        spark.conf.set(name, before or "")


def _rows(traces: TraceSet, runs: Mapping[int, CausalRun]) -> DataFrame:
    """Return packed rows for the slices of these runs."""
    plans = {number: run.layout.plan for number, run in runs.items()}

    def stage(batches: Batches) -> Batches:
        for number, history in partial_histories(batches, plans):
            events = causal_events(IndexedHistory(history), runs[number].timeline)
            yield packed_batch(_packed(number, events))

    deliveries = sum(run.layout.deliveries for run in runs.values())
    return by_message(traces, runs, deliveries).mapInArrow(stage, spark_schema(PACKED_ROWS))


def _packed(number: int, events: CausalEvents) -> Iterator[PackedRow]:
    for slice_, rows in events.by_slice():
        yield slice_, number, SENT, pack(vars(rows.sent).values())
        yield slice_, number, COPIES, pack(list(vars(rows.copies).values())[:-1])
        yield slice_, number, HEARD, pack(vars(rows.heard).values())


def _unpacked(run: str, packed: Mapping[str, list[bytes]]) -> CausalSlice:
    size = sum(len(payload) for payloads in packed.values() for payload in payloads)
    if size > MOST_BYTES:
        raise cannot_be_cut(run, size, MOST_BYTES)
    message, process, position, time = unpack(packed.get(COPIES, []), 4)
    return CausalSlice(
        Sent(*unpack(packed.get(SENT, []), 5)),
        Copies(message, process, position, time, np.zeros_like(time)),
        Heard(*unpack(packed.get(HEARD, []), 4)),
    )


def _scan(runs: Mapping[int, CausalRun], known: Mapping[int, Mapping[int, Ints]]) -> Stage:
    """Return the stage from packed rows, sorted by run and slice, to what whole runs show."""

    def stage(batches: Batches) -> Batches:
        for number, rows in groupby(_each(batches), key=itemgetter("number")):
            yield _scan_run(runs[number], rows, known[number])

    return stage


def _scan_run(
    run: CausalRun, rows: Iterable[dict[str, Any]], known: Mapping[int, Ints]
) -> pa.RecordBatch:
    plan = run.layout.plan
    scan = CausalScan(plan.faulty, known)
    for slice_, of_slice in groupby(rows, key=itemgetter("place")):
        packed: dict[str, list[bytes]] = {}
        for row in of_slice:
            packed.setdefault(row["kind"], []).append(row["payload"])
        scan.advance(slice_, _unpacked(plan.run, packed))
        if scan.state_bytes > MOST_STATE:
            raise UsageError(
                f"causal order of run '{plan.run}' cannot be checked: what is under way there at"
                f" a time takes {scan.state_bytes >> 20} MiB of memory, more than the"
                f" {MOST_STATE >> 20} that there are; leave the property out with --property"
            )
    scan.finish()
    return _row(plan.number, scan.findings, scan.found)


def _each(batches: Batches) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


def _row(number: int, findings: CausalFindings, found: Mapping[int, Ints]) -> pa.RecordBatch:
    row = {**vars(findings), "number": number}
    row["found"] = list(found)
    row["clocks"] = [clock.tolist() for clock in found.values()]
    return pa.RecordBatch.from_pylist([row], FOUND)


def _findings(row: Row) -> CausalFindings:
    earliest = tuple(row.earliest) if row.earliest else None
    return CausalFindings(row.wrong, earliest, row.unordered, row.least)
