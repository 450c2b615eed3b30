"""Runs that one task can hold, each read from its files by the task that works on it.

Most trace sets are on this machine, with files for each run that one task can hold. Then all that
Spark has to do is to hand out the runs: one job without a shuffle, where the plan of a job that
reads, joins and groups events takes a Spark that just started longer than the work itself.
"""

from __future__ import annotations

import heapq
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from flexgroup.pipeline.in_memory.small_run import SmallRun
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import spark_schema
from flexgroup.trace.run import Run

_BUNDLES = pa.schema([pa.field("work", pa.string(), nullable=False)])


def for_each_run(
    traces: TraceSet,
    requests: Mapping[str, Any],
    do: Callable[[SmallRun], pa.Table],
    columns: pa.Schema,
) -> DataFrame:
    """Return the tables that `do` makes of these runs, one after the other.

    `requests` names the runs, and says for each, as far as JSON can, what `do` has to know. There
    are as many tasks as cores, of about equal weight: the events that have to be read.
    """
    assert traces.files is not None
    files, directory = traces.files, str(traces.files.directory.absolute())

    def do_each(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch.column("work").to_pylist():
                for run, kinds, request in json.loads(text):
                    small = SmallRun(Path(directory), Run(**run), kinds, request)
                    yield from do(small).to_batches()

    described = {run.run: run for run in files.described}
    weights = files.runs_to_read(most=sys.maxsize)
    work = sorted(requests, key=weights.__getitem__, reverse=True)
    bundles = [
        [(asdict(described[name]), files.kinds_of(name), requests[name]) for name in bundle]
        for bundle in _bundles(work, weights, traces.spark.sparkContext.defaultParallelism)
    ]
    rows = pa.Table.from_pydict({"work": [json.dumps(bundle) for bundle in bundles]}, _BUNDLES)
    return traces.spark.createDataFrame(rows).mapInArrow(do_each, spark_schema(columns))


def _bundles(work: Iterable[str], weights: Mapping[str, int], most: int) -> list[list[str]]:
    """Give each run, heavy ones first, to the bundle that is lightest so far."""
    heap: list[tuple[int, int]] = [(0, number) for number in range(most)]
    bundles: list[list[str]] = [[] for _ in range(most)]
    for name in work:
        weight, number = heapq.heappop(heap)
        bundles[number].append(name)
        heapq.heappush(heap, (weight + weights[name], number))
    return [bundle for bundle in bundles if bundle]
