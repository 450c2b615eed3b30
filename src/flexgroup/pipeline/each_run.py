"""Runs as work for executors that open the files themselves.

Most trace sets are on this machine, with files for each run that one task can hold. Then all that
Spark has to do is to hand out the runs: one job without a shuffle, where the plan of a job that
reads, joins and groups events takes a Spark that just started longer than the work itself.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flexgroup.pipeline.read import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexgroup.pipeline.read import TraceSet

Work = Mapping[str, Any]
"""What to do with a run, as it goes into JSON; `weight` tells how much that is."""

_BUNDLES = pa.schema([pa.field("work", pa.string(), nullable=False)])


def for_each_run(
    traces: TraceSet, work: Iterable[Work], do: Callable[[Work], pa.Table], columns: pa.Schema
) -> DataFrame:
    """The tables that `do` makes, one after the other: as many tasks as there are cores, of about
    equal weight."""

    def do_each(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch.column("work").to_pylist():
                for piece in json.loads(text):
                    yield from do(piece).to_batches()

    bundles = _bundles(work, traces.spark.sparkContext.defaultParallelism)
    rows = pa.Table.from_pydict({"work": [json.dumps(bundle) for bundle in bundles]}, _BUNDLES)
    return traces.spark.createDataFrame(rows).mapInArrow(do_each, spark_schema(columns))


def _bundles(work: Iterable[Work], most: int) -> list[list[Work]]:
    """Each piece, heavy ones first, to the bundle that is lightest so far."""
    heap: list[tuple[int, int]] = [(0, number) for number in range(most)]
    bundles: list[list[Work]] = [[] for _ in range(most)]
    for piece in sorted(work, key=lambda piece: piece["weight"], reverse=True):
        weight, number = heapq.heappop(heap)
        bundles[number].append(piece)
        heapq.heappush(heap, (weight + piece["weight"], number))
    return [bundle for bundle in bundles if bundle]
