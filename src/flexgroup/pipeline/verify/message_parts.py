"""Large runs taken apart by message: a task has everything about some of the messages."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import spark_schema
from flexgroup.pipeline.verify.event_rows import packed_message
from flexgroup.pipeline.verify.packed_rows import (
    PACKED_ROWS,
    Batches,
    partition,
    received_by_run,
    unpack_table,
)
from flexgroup.trace.history import History, RunFacts
from flexgroup.trace.reader import history_of
from flexgroup.trace.run_events import refuse_repeated_multicasts
from flexgroup.trace.schema import DELIVER, MULTICAST

PART_DELIVERIES = 500_000
"""How many deliveries go to a task, roughly."""

MOST_TASKS = 1000


def by_message(traces: TraceSet, numbers: Collection[int], deliveries: int) -> DataFrame:
    """Return what these runs multicast and delivered, so many deliveries in all, as packed rows
    that lie in partitions by message."""
    parts = min(MOST_TASKS, max(2, deliveries // PART_DELIVERIES))

    def split(kind: str, *more: str) -> DataFrame:
        events = traces.events(kind, "process", "step", "time", "origin", "seq", *more)
        rows = events.where(f.col("number").isin(list(numbers)))
        named = rows.withColumn("message", packed_message()).drop("origin", "seq")
        return named.mapInArrow(partition(kind, parts), spark_schema(PACKED_ROWS))

    both = split(DELIVER).unionAll(split(MULTICAST, "destinations"))
    return both.repartitionById(parts, f.col("place"))


def partial_histories(
    batches: Batches, about: Mapping[int, RunFacts]
) -> Iterator[tuple[int, History]]:
    """Yield what some messages tell of each run, from packed rows."""
    for number, kinds in received_by_run(batches).items():
        tables = {
            kind: pa.concat_tables([unpack_table(payload) for _, payload in payloads])
            for kind, payloads in kinds.items()
        }
        nothing = pa.table({})
        history = history_of(lambda kind: tables.get(kind, nothing), about[number])  # noqa: B023
        refuse_repeated_multicasts(history.run, history.multicasts.message)
        yield number, history
