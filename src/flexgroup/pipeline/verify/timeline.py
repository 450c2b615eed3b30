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

from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import spark_schema
from flexgroup.pipeline.verify.packed_rows import Batches, Stage
from flexgroup.properties.kernels.grouping import lookup
from flexgroup.trace.history import Ints, by_key
from flexgroup.trace.reader import ints
from flexgroup.trace.schema import DELIVER, MULTICAST

LATER = int(np.iinfo(np.int64).max)
EARLIER = -1
"""Steps that stand for nothing: one later than all, one earlier than all."""

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
        """Return the parts of events."""
        row = np.searchsorted(self.processes, process)
        low = np.zeros(len(row), dtype=np.int64)
        high = np.full(len(row), self.parts - 1, dtype=np.int64)
        # How many parts but the first begin by the step: halve what is possible.
        while (low < high).any():
            middle = (low + high) // 2
            begun = (low < high) & (self.begins[row, np.minimum(middle, self.parts - 2)] <= step)
            high = np.where(begun, high, np.maximum(low, middle))
            low = np.where(begun, middle + 1, low)
        return low

    def last_heard_by(self, process: Ints) -> Ints:
        """Return the step of the last delivery of each of these processes, or EARLIER."""
        place, is_known = lookup(self.processes, process)
        result = np.full(len(process), EARLIER, dtype=np.int64)
        result[is_known] = self.last_heard[place[is_known]]
        return result


def timelines(
    traces: TraceSet, bounds: Mapping[int, Ints], faulty: Mapping[int, tuple[int, ...]]
) -> dict[int, Timeline]:
    """Return where these runs are cut, given the times of the cuts."""
    numbers = f.col("number").isin(list(bounds))

    def of(kind: str) -> DataFrame:
        rows = traces.events(kind, "process", "step", "time").where(numbers)
        return rows.mapInArrow(_first_steps(kind, bounds), spark_schema(FIRST_STEPS))

    rows = (
        of(DELIVER)
        .unionAll(of(MULTICAST))
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


def _first_steps(kind: str, bounds: Mapping[int, Ints]) -> Stage:
    """Return the stage from events of one kind to rows with FIRST_STEPS."""

    def stage(batches: Batches) -> Batches:
        found: dict[int, dict[tuple[int, int], list[int]]] = {}
        for batch in batches:
            for number, rows in by_key(ints(batch, "number")):
                columns = (ints(batch, name)[rows] for name in ("process", "step", "time"))
                _take(found.setdefault(number, {}), bounds[number], *columns)
        yield pa.RecordBatch.from_pylist(list(_told(kind, found)), FIRST_STEPS)

    return stage


def _take(
    found: dict[tuple[int, int], list[int]], bounds: Ints, process: Ints, step: Ints, time: Ints
) -> None:
    """Keep the first and the last step of each process and part."""
    part = np.searchsorted(bounds, time, side="right")
    keys = process * (len(bounds) + 1) + part
    order = np.argsort(keys, kind="stable")
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


def _told(
    kind: str, found: Mapping[int, Mapping[tuple[int, int], list[int]]]
) -> Iterator[dict[str, int]]:
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
