"""Trace sets as Spark sees them: runs and events as DataFrames.

Events of runs that have no row in `runs` are left out: such a run is still being written, or its
writer was killed. What cannot be relied upon is refused when a trace set is opened: here with
pyarrow where the files are on this machine, in `flexgroup.pipeline.elsewhere` with Spark itself
where only Spark can reach them.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from flexgroup.pipeline.session import executors_are_here
from flexgroup.pipeline.trace_files import TraceFiles, look_here
from flexgroup.trace import schema
from flexgroup.trace.run import Run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

FINISHED = {"pathGlobFilter": "*.parquet"}
"""The files that count; Spark passes over names that start with an underscore on its own."""

_NUMBERED = schema.RUN_COLUMNS.append(pa.field("number", pa.int32(), nullable=False))


@dataclass(frozen=True)
class TraceSet:
    """A directory of runs. The number of a run is its place in the order of their names, and
    shorter to shuffle than the name."""

    spark: SparkSession
    path: str
    described: tuple[Run, ...]
    """By name. There is a row for each run, so the driver can see them all."""
    kinds: frozenset[str]
    """The kinds of events that were recorded."""
    location: str
    """The path as Spark takes it: with a scheme, nothing in it being a pattern."""
    files: TraceFiles | None = None
    """What is on this machine, if the executors can open it without Spark."""

    @cached_property
    def runs(self) -> DataFrame:
        """The columns of the schema, and `number`."""
        rows = [{**asdict(run), "number": number} for number, run in enumerate(self.described)]
        return self.spark.createDataFrame(pa.Table.from_pylist(rows, schema=_NUMBERED))

    def events(self, kind: str, *columns: str) -> DataFrame:
        """The given columns of the events of one kind, and the `number` of their run."""
        from pyspark.sql import functions as f

        numbers = f.broadcast(self.runs.select("run", "number"))
        return self.recorded(kind).join(numbers, "run").select("number", *columns)

    def recorded(self, kind: str) -> DataFrame:
        """All events of one kind as the files have them, also of runs that are not finished."""
        columns = spark_schema(schema.EVENT_COLUMNS)
        if kind not in self.kinds:
            return self.spark.createDataFrame([], columns)
        reader = self.spark.read.schema(columns).options(**FINISHED)
        return reader.parquet(f"{self.location}/events/event={kind}")


def spark_schema(columns: pa.Schema) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(columns)


def open_trace_set(spark: SparkSession, path: str, files: TraceFiles | None = None) -> TraceSet:
    """The trace set of this path, which may be any that Spark can read.

    A path without a scheme is that of a directory of this machine, if there is one, and otherwise
    what Spark makes of it. Whoever has had a look at the files already hands them over.
    """
    files = files or look_here(path)
    if files is None:
        from flexgroup.pipeline.elsewhere import open_elsewhere

        return open_elsewhere(spark, path)
    directory = str(files.directory.resolve())
    return TraceSet(
        spark,
        path.rstrip("/"),
        files.described,
        files.kinds,
        "file:" + re.sub(r"([\[\]{}*?\\])", r"\\\1", directory),
        files if executors_are_here(spark) else None,
    )


def duplicate_steps(traces: TraceSet) -> DataFrame:
    """Steps that a process took more than once: `number`, `process`, `step`, how many `rows`.

    There are none in a sound trace; there are where two runs with the same name were mixed. The
    steps of a process are first counted in blocks of 64, each a bit of one integer, and only
    blocks with more rows than bits are looked at again: without duplicates, what is shuffled is a
    fraction of the events.
    """
    from pyspark.sql import functions as f

    parts = [traces.events(kind, "process", "step") for kind in sorted(traces.kinds)]
    if not parts:
        return traces.spark.createDataFrame([], "number int, process int, step bigint, rows bigint")
    block = ["number", "process", "block"]
    steps = reduce(lambda one, other: one.unionAll(other), parts).withColumn(
        "block", f.expr("floor(step / 64)")
    )
    crowded = (
        steps.groupBy(block)
        .agg(
            f.count("*").alias("rows"),
            f.expr("bit_or(shiftleft(1L, int(pmod(step, 64L))))").alias("bits"),
        )
        .where("rows > bit_count(bits)")
        .select(block)
    )
    return (
        steps.join(crowded, block, "left_semi")
        .groupBy("number", "process", "step")
        .agg(f.count("*").alias("rows"))
        .where("rows > 1")
    )
