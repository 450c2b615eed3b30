"""Trace sets as Spark sees them: runs and events as DataFrames.

Events of runs that have no row in `runs` are left out: such a run is still being written, or its
writer was killed. What cannot be relied upon is refused when a trace set is opened: with pyarrow
where the files are on this machine (`local_files`), and with Spark itself where only Spark can
reach them (`remote_files`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from flexgroup.pipeline.reading.guards import guarded
from flexgroup.pipeline.reading.local_files import MOST_EVENTS, LocalFiles, look_here
from flexgroup.pipeline.reading.remote_files import look_there
from flexgroup.pipeline.spark.frames import nothing, read_files
from flexgroup.pipeline.spark.session import executors_are_here
from flexgroup.trace import schema
from flexgroup.trace.run import Run

FEW_RUNS = 8
"""The numbers of so many runs are told by comparing names, which takes less time than a join."""

_NUMBERED = schema.RUN_COLUMNS.append(pa.field("number", pa.int32(), nullable=False))


@dataclass(frozen=True)
class TraceSet:
    """A directory of runs. The number of a run is its place in the order of their names, and
    shorter to shuffle than the name."""

    spark: SparkSession
    location: str
    """The path as Spark takes it: with a scheme, nothing in it being a pattern."""
    described: tuple[Run, ...]
    """The runs, sorted by name: one row each, so the driver can hold them all."""
    kinds: frozenset[str]
    """The kinds of events that were recorded."""
    files: LocalFiles | None = None
    """What is on this machine, if the executors can open it without Spark."""
    frames: Mapping[str, DataFrame] | None = None
    """The events of each kind, if they are not in files below `location`."""

    @cached_property
    def runs(self) -> DataFrame:
        """The rows of `runs`, with the `number` of each run."""
        rows = [{**asdict(run), "number": number} for number, run in enumerate(self.described)]
        return self.spark.createDataFrame(pa.Table.from_pylist(rows, schema=_NUMBERED))

    def events(self, kind: str, *columns: str) -> DataFrame:
        """Return these columns of the events of one kind, and the `number` of their run; reading a
        value that no valid trace has fails."""
        told = self._numbered(self.recorded(kind))
        if kind not in self.kinds:
            # Of constants, Spark would find out that they break a rule while it plans.
            return told.select("number", *columns)
        return told.select("number", *(guarded(kind, name) for name in columns))

    def _numbered(self, events: DataFrame) -> DataFrame:
        """Add the `number` of the run to events, and leave out those of other runs."""
        if len(self.described) > FEW_RUNS:
            return events.join(f.broadcast(self.runs.select("run", "number")), "run")
        number = f.lit(None).cast("int")
        for place, run in enumerate(self.described):
            number = f.when(f.col("run") == run.run, f.lit(place)).otherwise(number)
        return events.where(f.col("run").isin([run.run for run in self.described])).withColumn(
            "number", number
        )

    def runs_to_read(self, most: int = MOST_EVENTS) -> dict[str, int]:
        """Return the runs that one task each can read from their files, given the most events that
        it may have to read, and how many it has."""
        return self.files.runs_to_read(most) if self.files else {}

    def recorded(self, kind: str) -> DataFrame:
        """Return all events of one kind as the files have them, also of unfinished runs."""
        if kind not in self.kinds:
            return nothing(self.spark, schema.EVENT_COLUMNS)
        if self.frames is not None:
            return self.frames[kind]
        folder = f"{self.location}/events/event={kind}"
        return read_files(self.spark, folder, schema.EVENT_COLUMNS)


def open_trace_set(spark: SparkSession, path: str, files: LocalFiles | None = None) -> TraceSet:
    """Open the trace set of this path, which may be any that Spark can read.

    A path without a scheme is that of a directory of this machine, if there is one, and otherwise
    what Spark makes of it. Whoever has had a look at the files already hands them over.
    """
    files = files or look_here(path)
    if files is None:
        return open_remote(spark, path)
    directory = re.sub(r"([\[\]{}*?\\])", r"\\\1", str(files.directory.resolve()))
    here = files if executors_are_here(spark) else None
    return TraceSet(spark, f"file:{directory}", files.described, files.kinds, here)


def open_remote(spark: SparkSession, path: str) -> TraceSet:
    """Open a trace set that only Spark can reach."""
    location = path.rstrip("/")
    return TraceSet(spark, location, *look_there(spark, location))
