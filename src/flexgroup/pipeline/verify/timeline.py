"""Where large runs are cut in time, as steps of each process.

The times of events only choose where to cut. A part of a run holds, of every process, the events
between two of its steps, so that whoever knows process and step of an event knows its part,
whatever the clocks said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from flexgroup.pipeline.in_memory.packed_rows import Batches, Stage
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import spark_schema, union
from flexgroup.pipeline.verify.file_pieces import frame_of_pieces, read_pieces
from flexgroup.properties.indexed_history import Flags
from flexgroup.properties.kernels.grouping import lookup
from flexgroup.trace.history import Ints, by_key, in_order
from flexgroup.trace.reader import ints
from flexgroup.trace.schema import DELIVER, MULTICAST

LATER = int(np.iinfo(np.int64).max)
EARLIER = -1
"""Steps that stand for nothing: one later than all, one earlier than all."""

TOLD = ("process", "step", "time")

_Steps = dict[int, dict[tuple[int, int], list[int]]]
"""The first and the last step of each process and part of each run."""

FIRST_STEPS = pa.schema(
    {
        **dict.fromkeys(("number", "process", "part"), pa.int32()),
        **dict.fromkeys(("first", "last_sent", "first_heard", "last_heard"), pa.int64()),
    }
)
"""What a row tells of the events of a process with times of a part: the first step, the last
multicast, the first and the last delivery."""


@dataclass(frozen=True)
class Timeline:
    """The processes of a run, sorted, and where they are cut."""

    processes: Ints
    begins: Ints
    """The step with which each part but the first begins, a row for each process; ascending."""
    last_sent: Ints
    first_heard: Ints
    last_heard: Ints

    @property
    def parts(self) -> int:
        return int(self.begins.shape[1]) + 1

    @property
    def answers(self) -> bool:
        """Whether a process multicast something after it had delivered something."""
        return bool((self.last_sent > self.first_heard).any())

    def part(self, process: Ints, step: Ints) -> Ints:
        """Return the parts of events: how many parts but the first begin by the step."""
        found = np.zeros(len(process), dtype=np.int64)
        for each, rows in by_key(process):
            begins = self.begins[np.searchsorted(self.processes, each)]
            found[rows] = np.searchsorted(begins, step[rows], side="right")
        return found

    def is_behind(self, part: int, process: Ints, step: Ints) -> Flags:
        """Tell which events are of this part or a later one, which there need not be."""
        if part <= 0:
            return np.ones(len(step), dtype=np.bool_)
        if part >= self.parts:
            return np.zeros(len(step), dtype=np.bool_)
        begun: Flags = self.begins[:, part - 1][np.searchsorted(self.processes, process)] <= step
        return begun

    def hears_behind(self, part: int, process: Ints) -> Flags:
        """Tell which processes deliver something in parts behind this one's beginning."""
        place, is_known = lookup(self.processes, process)
        heard: Flags = is_known.copy()
        last = self.last_heard[place[is_known]]
        heard[is_known] = (last != EARLIER) & self.is_behind(part, process[is_known], last)
        return heard


def timelines(
    traces: TraceSet, bounds: Mapping[int, Ints], faulty: Mapping[int, tuple[int, ...]]
) -> dict[int, Timeline]:
    """Return where these runs are cut, given the times of the cuts."""
    rows = (
        _first_steps(traces, bounds)
        .groupBy("number", "process", "part")
        .agg(
            *(f.min(name).alias(name) for name in ("first", "first_heard")),
            *(f.max(name).alias(name) for name in ("last_sent", "last_heard")),
        )
    )
    table = rows.toArrow()
    number = ints(table, "number")
    found = {which: table.take(pa.array(chosen)) for which, chosen in by_key(number)}
    return {
        which: timeline(rows, len(bounds[which]) + 1, faulty[which])
        for which, rows in found.items()
    }


def timeline(rows: pa.Table, parts: int, faulty: tuple[int, ...]) -> Timeline:
    """Return the timeline of a run from rows with FIRST_STEPS."""
    columns = {name: ints(rows, name) for name in FIRST_STEPS.names}
    processes, row = np.unique(columns["process"], return_inverse=True)
    first = np.full((len(processes), parts), LATER, dtype=np.int64)
    np.minimum.at(first, (row, columns["part"]), columns["first"])
    # A part begins with the first step that has a time of it or of a later one.
    begins = np.minimum.accumulate(first[:, ::-1], axis=1)[:, ::-1][:, 1:]
    last_sent, last_heard = (np.full(len(processes), EARLIER, dtype=np.int64) for _ in range(2))
    first_heard = np.full(len(processes), LATER, dtype=np.int64)
    np.maximum.at(last_sent, row, columns["last_sent"])
    np.maximum.at(last_heard, row, columns["last_heard"])
    np.minimum.at(first_heard, row, columns["first_heard"])
    # What a process delivered that is faulty by design counts for nothing.
    is_faulty = np.isin(processes, faulty)
    first_heard[is_faulty], last_heard[is_faulty] = LATER, EARLIER
    return Timeline(processes, begins, last_sent, first_heard, last_heard)


def _first_steps(traces: TraceSet, bounds: Mapping[int, Ints]) -> DataFrame:
    """Return rows with FIRST_STEPS, of which some may be about the same process and part."""
    schema = spark_schema(FIRST_STEPS)
    if traces.files is not None:
        pieces, numbers = frame_of_pieces(traces, bounds, (DELIVER, MULTICAST))
        return pieces.mapInArrow(_from_files(bounds, numbers), schema)
    numbers_asked = f.col("number").isin(list(bounds))
    return union(
        traces.events(kind, *TOLD).where(numbers_asked).mapInArrow(_of_kind(kind, bounds), schema)
        for kind in (DELIVER, MULTICAST)
    )


def _from_files(bounds: Mapping[int, Ints], numbers: Mapping[str, int]) -> Stage:
    def stage(batches: Batches) -> Batches:
        found: dict[str, _Steps] = {}
        for kind, number, events in read_pieces(batches, numbers, lambda _: TOLD):
            _take_all(found.setdefault(kind, {}), bounds, number, events)
        for kind, steps in found.items():
            yield pa.RecordBatch.from_pylist(list(_told(kind, steps)), FIRST_STEPS)

    return stage


def _of_kind(kind: str, bounds: Mapping[int, Ints]) -> Stage:
    def stage(batches: Batches) -> Batches:
        found: _Steps = {}
        for batch in batches:
            _take_all(found, bounds, ints(batch, "number"), batch)
        yield pa.RecordBatch.from_pylist(list(_told(kind, found)), FIRST_STEPS)

    return stage


def _take_all(
    found: _Steps, bounds: Mapping[int, Ints], number: Ints, events: pa.Table | pa.RecordBatch
) -> None:
    columns = [ints(events, name) for name in TOLD]
    for run, rows in by_key(number):
        of_run = found.setdefault(run, {})
        _take(of_run, bounds[run], *(column[rows] for column in columns))


def _take(
    found: dict[tuple[int, int], list[int]], bounds: Ints, process: Ints, step: Ints, time: Ints
) -> None:
    """Keep the first and the last step of each process and part."""
    part = np.searchsorted(bounds, time, side="right")
    keys = process * (len(bounds) + 1) + part
    order = in_order(keys)
    keys, step = keys[order], step[order]
    starts = np.flatnonzero(np.diff(keys, prepend=EARLIER))
    if len(starts) == 0:
        return
    lowest, highest = np.minimum.reduceat(step, starts), np.maximum.reduceat(step, starts)
    for key, low, high in zip(
        keys[starts].tolist(), lowest.tolist(), highest.tolist(), strict=True
    ):
        seen = found.setdefault(divmod(key, len(bounds) + 1), [low, high])
        seen[0], seen[1] = min(seen[0], low), max(seen[1], high)


def _told(kind: str, found: _Steps) -> Iterator[dict[str, int]]:
    heard = kind == DELIVER
    for number, steps in found.items():
        for (process, part), (low, high) in steps.items():
            yield {
                "number": number,
                "process": process,
                "part": part,
                "first": low,
                "last_sent": EARLIER if heard else high,
                "first_heard": low if heard else LATER,
                "last_heard": high if heard else EARLIER,
            }
