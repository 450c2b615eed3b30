"""Trace sets as Spark sees them: runs and events as DataFrames.

Events of runs that have no row in `runs` are left out: such a run is still being written, or its
writer was killed. What cannot be relied upon is refused when a trace set is opened: here with
pyarrow where the files are on this machine, in `flexgroup.pipeline.elsewhere` with Spark itself
where only Spark can reach them.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from flexgroup.trace import schema
from flexgroup.trace.reader import read_runs
from flexgroup.trace.validate.footers import checked_kinds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

FINISHED = {"pathGlobFilter": "*.parquet"}
"""The files that count; Spark passes over names that start with an underscore on its own."""

_NUMBERED = schema.RUN_COLUMNS.append(pa.field("number", pa.int32(), nullable=False))


@dataclass(frozen=True)
class TraceSet:
    """A directory of runs. `runs` has the columns of the schema, and `number`: 0, 1, ... in the
    order of the names, which is shorter to shuffle than a name."""

    spark: SparkSession
    path: str
    runs: DataFrame
    kinds: frozenset[str]
    """The kinds of events that were recorded."""
    location: str
    """The path as Spark takes it: with a scheme, nothing in it being a pattern."""

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


def open_trace_set(spark: SparkSession, path: str) -> TraceSet:
    """The trace set of this path, which may be any that Spark can read.

    A path without a scheme is that of a directory of this machine, if there is one, and otherwise
    what Spark makes of it.
    """
    directory = _directory_here(path)
    if directory is None:
        from flexgroup.pipeline.elsewhere import open_elsewhere

        return open_elsewhere(spark, path)
    described = read_runs(directory)
    kinds = checked_kinds(directory, [run.run for run in described])
    rows = [{**asdict(run), "number": number} for number, run in enumerate(described)]
    runs = spark.createDataFrame(pa.Table.from_pylist(rows, schema=_NUMBERED))
    location = "file:" + re.sub(r"([\[\]{}*?\\])", r"\\\1", str(directory.resolve()))
    return TraceSet(spark, path.rstrip("/"), runs, kinds, location)


def _directory_here(path: str) -> Path | None:
    if Path(path).exists():
        return Path(path)
    parts = urlsplit(path)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


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
