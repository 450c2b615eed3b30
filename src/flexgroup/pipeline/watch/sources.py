"""What arrives in a trace set, as one stream: events, and what is told about runs."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from flexgroup.core.errors import UsageError
from flexgroup.core.message import NO_MESSAGE
from flexgroup.pipeline.in_memory.event_rows import CODES
from flexgroup.pipeline.reading.guards import broken
from flexgroup.pipeline.spark.frames import CHECKED, spark_schema, union, with_columns
from flexgroup.pipeline.verify.event_rows import packed_message
from flexgroup.pipeline.watch.reassembly import ARRIVING, FOLLOWED
from flexgroup.trace import schema
from flexgroup.trace.run_files import AS_PART
from flexgroup.trace.writer import STARTED

STARTS, ENDS = -1, -2
"""These stand in place of an event's code in the rows that describe a run: when it starts, and when
it is over."""

COLUMNS = pa.schema(
    [
        pa.field("run", pa.string()),
        *ARRIVING,
        pa.field("told", pa.string()),
        pa.field("written", pa.int64()),
    ]
)
"""The columns of the stream; `told` is the row of `started` or `runs`, as JSON, and `written` when
the file was, in microseconds since 1970."""

PART = rf"^{AS_PART}\.parquet$"
"""What follows the run in the name of a part."""

PATTERN = re.compile(r"[\[\]{}*?\\]")

REMEMBERED = {"maxFileAge": "7d"}
"""What Spark remembers of files: those that are no older than this before the newest one. At the
beginning, files of any age are new; later, an older one is passed over."""


def location_of(path: str) -> str:
    """Return the path as Spark takes it, wherever its other files are by default."""
    location = path.rstrip("/") if "://" in path else f"file:{Path(path).resolve()}"
    if PATTERN.search(location):
        # Spark's file stream takes the files it has listed for patterns, and reads some again.
        raise UsageError(
            f"'{path}' cannot be watched with Spark, because the path has one of the signs"
            " [ ] { } * ? \\ in it; rename the directory"
        )
    return location


def traces_at(path: str) -> str:
    """Return the location of a trace set, which may be empty, but must be there."""
    if "://" not in path and not Path(path).is_dir():
        raise UsageError(
            f"'{path}' is not a directory; give the directory of a trace set, or an empty one in"
            " which runs are going to appear"
        )
    return location_of(path)


def arriving(spark: SparkSession, traces: str, ticks: str) -> DataFrame:
    """Return the stream, with COLUMNS; a file below the location `ticks` makes a batch without
    rows."""
    # Patterns, because a folder that does not exist yet is an error and a pattern is not.
    events = _files(spark, f"{traces}/events/event={{{','.join(FOLLOWED)}}}", _EVENTS)
    runs = _files(spark, f"{traces}/{{runs,{STARTED}}}", schema.RUN_COLUMNS)
    nothing = _files(spark, f"{ticks}/*", pa.schema([pa.field("id", pa.int64())])).where("false")
    frames = (_with_codes(events), _told(runs), nothing)
    return union(with_columns(frame, COLUMNS) for frame in frames)


_EVENTS = pa.schema(
    [
        schema.EVENT_COLUMNS.field(name)
        for name in (
            "run",
            "process",
            "step",
            "time",
            "origin",
            "seq",
            "destinations",
            "detail",
        )
    ]
)


def _files(spark: SparkSession, pattern: str, columns: pa.Schema) -> DataFrame:
    reader = spark.readStream.schema(spark_schema(columns)).options(**CHECKED, **REMEMBERED)
    return reader.parquet(pattern)


def _with_codes(events: DataFrame) -> DataFrame:
    # Numbers that no message has would pass for another message: the follower refuses them.
    is_odd = broken(schema.DELIVER, "origin") | broken(schema.DELIVER, "seq")
    kind = f.regexp_extract("_metadata.file_path", r"/event=(\w+)/[^/]*$", 1)
    is_view, view = kind == schema.VIEW, f.from_json("detail", _VIEW)
    is_installed = ~f.coalesce(view["told"], f.lit(False))
    # RUN-part-NUMBER.parquet, or of one of several writers RUN@WRITER-NUMBER.parquet.
    is_of_run = f.startswith("_metadata.file_name", "run")
    rest = f.substr("_metadata.file_name", f.length("run") + 1)
    writer, number = (f.regexp_extract(rest, PART, group) for group in (1, 2))
    return events.withColumns(
        {
            "event": f.coalesce(*(f.when(kind == name, CODES[name]) for name in FOLLOWED)),
            "message": f.when(is_view, f.when(is_installed, view["number"]).otherwise(NO_MESSAGE))
            .when(is_odd, NO_MESSAGE)
            .otherwise(packed_message()),
            "destinations": f.when(is_view, view["members"]).otherwise(f.col("destinations")),
            "part": f.when(is_of_run & (number != ""), number),
            "writer": f.when(is_of_run & (writer != ""), writer),
            "written": f.unix_micros("_metadata.file_modification_time"),
        }
    )


_VIEW = "number bigint, members array<int>, told boolean"


def _told(runs: DataFrame) -> DataFrame:
    starts = f.contains(f.col("_metadata.file_path"), f.lit(f"/{STARTED}/"))
    described = f.struct(*schema.RUN_COLUMNS.names)
    return runs.withColumns(
        {
            "event": f.when(starts, STARTS).otherwise(ENDS),
            "told": f.to_json(described, {"ignoreNullFields": "false"}),
            "written": f.unix_micros("_metadata.file_modification_time"),
        }
    )
