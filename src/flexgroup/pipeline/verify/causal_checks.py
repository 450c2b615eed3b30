"""Causal order of large runs in which processes multicast after they delivered.

All slices are checked at the same time, each with a glimpse of the one before, which decides as a
rule. If it does not, since messages were under way for longer than that, or causes form loops,
one task goes through the slices of the run in their order: it has one of them in memory at a
time, and the clocks that go from slice to slice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import spark_schema
from flexgroup.pipeline.verify.causal_rows import PARTS_A_SLICE, CausalEvents, causal_events
from flexgroup.pipeline.verify.layout import Layout
from flexgroup.pipeline.verify.message_parts import MOST_TASKS, by_message, partial_histories
from flexgroup.pipeline.verify.packed_rows import (
    PACKED_ROWS,
    Batches,
    PackedRow,
    Stage,
    pack,
    packed_batch,
    received_by_run,
    unpack,
)
from flexgroup.pipeline.verify.timeline import Timeline, timelines
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

SENT, COPIES, HEARD, UNCLEAR = "sent", "copies", "heard", "unclear"
"""The kinds of packed rows: the columns of what they are named after; and how many copies the
checkers of slices cannot judge."""

FOUND = pa.schema(
    [
        pa.field("number", pa.int32()),
        pa.field("unclear", pa.int64()),
        pa.field("wrong", pa.int64()),
        pa.field("earliest", pa.list_(pa.int64())),
        pa.field("unordered", pa.int64()),
        pa.field("least", pa.int64()),
        pa.field("found", pa.list_(pa.int64())),
        pa.field("clocks", pa.list_(pa.list_(pa.int64()))),
    ]
)


@dataclass(frozen=True)
class CausalRun:
    """A run that is checked for causal order, and where it is cut."""

    layout: Layout
    timeline: Timeline
    place: int
    """The place of its first slice among those of all runs."""

    @property
    def slices(self) -> int:
        return -(-self.timeline.parts // PARTS_A_SLICE)


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
    """Return what is wrong with causal order in these runs."""
    if not runs:
        return {}
    found = {number: CausalFindings() for number in runs}
    unclear = set()
    for row in _at_the_same_time(traces, runs).collect():
        if row.unclear:
            unclear.add(row.number)
        found[row.number].take(_findings(row))
    if unclear:
        chosen = {number: replace(runs[number], place=0) for number in sorted(unclear)}
        found.update(_one_after_the_other(traces, chosen))
    return found


def _at_the_same_time(traces: TraceSet, runs: Mapping[int, CausalRun]) -> DataFrame:
    """Return rows with FOUND of all slices of these runs."""
    tasks = min(MOST_TASKS, sum(run.slices for run in runs.values()))
    rows = _rows(traces, runs, lambda run, events: events.windows(run.slices))
    return rows.repartitionById(tasks, f.col("place") % tasks).mapInArrow(
        _check_slices(runs), spark_schema(FOUND)
    )


def _one_after_the_other(
    traces: TraceSet, runs: Mapping[int, CausalRun]
) -> dict[int, CausalFindings]:
    """Return what is found when a task goes through all slices of a run, as often as it must."""
    known: dict[int, dict[int, Ints]] = {number: {} for number in runs}
    found: dict[int, CausalFindings] = {}
    with _batches_of(traces.spark, BATCH_BYTES):
        while len(found) < len(runs):
            waiting = {number: run for number, run in runs.items() if number not in found}
            tasks = min(MOST_TASKS, len(waiting))
            rows = _rows(traces, waiting, lambda _, events: events.by_slice())
            in_order = rows.repartitionById(tasks, f.col("number") % tasks)
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


def _rows(
    traces: TraceSet,
    runs: Mapping[int, CausalRun],
    spread: Callable[[CausalRun, CausalEvents], Iterable[tuple[int, CausalSlice]]],
) -> DataFrame:
    """Return packed rows for the slices of these runs."""
    plans = {number: run.layout.plan for number, run in runs.items()}

    def stage(batches: Batches) -> Batches:
        for number, history in partial_histories(batches, plans):
            run = runs[number]
            events = causal_events(IndexedHistory(history), run.timeline)
            yield packed_batch(_packed(run, number, events, spread(run, events)))

    deliveries = sum(run.layout.deliveries for run in runs.values())
    return by_message(traces, runs, deliveries).mapInArrow(stage, spark_schema(PACKED_ROWS))


def _packed(
    run: CausalRun, number: int, events: CausalEvents, slices: Iterable[tuple[int, CausalSlice]]
) -> Iterator[PackedRow]:
    unclear = np.array([events.out_of_sight + events.back_in_time], dtype=np.int64)
    yield run.place, number, UNCLEAR, pack([unclear])
    for slice_, rows in slices:
        place = run.place + slice_
        yield place, number, SENT, pack(vars(rows.sent).values())
        yield place, number, COPIES, pack(list(vars(rows.copies).values())[:-1])
        yield place, number, HEARD, pack(vars(rows.heard).values())


def _unpacked(run: str, packed: Mapping[str, list[bytes]]) -> CausalSlice:
    size = sum(len(payload) for payloads in packed.values() for payload in payloads)
    if size > MOST_BYTES:
        raise UsageError(
            f"causal order of run '{run}' cannot be checked: its events cannot be told apart by"
            f" their times, so that {size >> 20} MiB of them would have to be in one piece, and"
            f" {MOST_BYTES >> 20} fit; record times, or leave the property out with --property"
        )
    message, process, position, time = unpack(packed.get(COPIES, []), 4)
    return CausalSlice(
        Sent(*unpack(packed.get(SENT, []), 5)),
        Copies(message, process, position, time, np.zeros_like(time)),
        Heard(*unpack(packed.get(HEARD, []), 4)),
    )


def _check_slices(runs: Mapping[int, CausalRun]) -> Stage:
    """Return the stage from packed rows to what the slices show by themselves."""

    def stage(batches: Batches) -> Batches:
        for number, kinds in received_by_run(batches).items():
            run = runs[number]
            unclear = sum(int(unpack([one], 1)[0][0]) for _, one in kinds.pop(UNCLEAR, []))
            yield _row(number, CausalFindings(), unclear)
            places: dict[int, dict[str, list[bytes]]] = {}
            for kind, payloads in kinds.items():
                for place, payload in payloads:
                    places.setdefault(place, {}).setdefault(kind, []).append(payload)
            for place in sorted(places):
                rows = _unpacked(run.layout.plan.run, places.pop(place))
                yield _slice_alone(run, place - run.place, rows)

    return stage


def _slice_alone(run: CausalRun, slice_: int, rows: CausalSlice) -> pa.RecordBatch:
    scan = CausalScan(run.layout.plan.faulty)
    sent, heard = rows.sent.came == slice_, rows.heard.came == slice_
    if slice_:
        scan.advance(slice_ - 1, rows.part(~sent, ~heard))
        scan.findings = CausalFindings()  # the checker of that slice has them as well
    scan.advance(slice_, rows.part(sent, heard))
    return _row(run.layout.plan.number, scan.findings, int(scan.waits))


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
    return _row(plan.number, scan.findings, 0, scan.found)


def _each(batches: Batches) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from batch.to_pylist()


def _row(
    number: int, findings: CausalFindings, unclear: int, found: Mapping[int, Ints] | None = None
) -> pa.RecordBatch:
    row = {**vars(findings), "number": number, "unclear": unclear}
    row["found"] = list(found or ())
    row["clocks"] = [clock.tolist() for clock in (found or {}).values()]
    return pa.RecordBatch.from_pylist([row], FOUND)


def _findings(row: Row) -> CausalFindings:
    earliest = tuple(row.earliest) if row.earliest else None
    return CausalFindings(row.wrong, earliest, row.unordered, row.least)
