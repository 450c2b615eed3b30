"""Opening a trace set that only Spark can reach: in HDFS, in an object store, ...

The same is refused as on this machine, and found out with Spark: what files there are, their
columns (by merging the columns of all footers), empty rows where there must be none (which is
what a column that one file lacks looks like), and runs that are described twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import reduce
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.reading.local_files import unknown_kind
from flexgroup.pipeline.spark.errors import condition_of, explained, readable, unless_missing
from flexgroup.pipeline.spark.frames import CHECKED, FINISHED, read_files, spark_schema, union
from flexgroup.trace import schema
from flexgroup.trace.reader import runs_by_name
from flexgroup.trace.rules import is_empty_in
from flexgroup.trace.run import Run
from flexgroup.trace.run_files import refuse_file_problems

_KIND = re.compile(r"/event=([^/]+)/([^/]+)\.parquet$")
_OF_ANOTHER_TYPE = ("CANNOT_MERGE_SCHEMAS", "PARQUET_TYPE_ILLEGAL")


def look_there(spark: SparkSession, location: str) -> tuple[tuple[Run, ...], frozenset[str]]:
    """Return the runs, by name, and the kinds of events of the trace set at this location; raise a
    UsageError if it cannot be relied upon."""
    with readable(location):
        if not _files(spark, f"{location}/runs"):
            raise UsageError(
                f"'{location}' holds no runs (no runs/*.parquet); give the directory of a trace set"
            )
        _refuse_other_types(spark, f"{location}/runs", schema.RUN_COLUMNS)
        rows = _rows_of_files(spark, f"{location}/events")
        if rows:
            _refuse_other_types(spark, f"{location}/events", schema.EVENT_COLUMNS)
        runs = _runs(spark, f"{location}/runs")
        refuse_file_problems(runs, rows)
        if rows:
            _refuse_empty_rows(empty_rows(spark, location, rows))
    return runs, frozenset(rows)


def empty_rows(spark: SparkSession, location: str, kinds: Iterable[str]) -> DataFrame:
    """Return the events with nothing in a column that they must have: `file` and `column`.

    A file that lacks the column altogether looks the same. The statistics in footers spare Spark
    reading most of it.
    """
    return union(
        _empty(
            read_files(spark, f"{location}/events/event={kind}", schema.EVENT_COLUMNS),
            schema.required_columns(kind),
        )
        for kind in sorted(kinds)
    )


def _empty(rows: DataFrame, required: Sequence[str]) -> DataFrame:
    missing = [f.col(name).isNull() for name in required]
    first = f.coalesce(
        *(f.when(is_null, name) for is_null, name in zip(missing, required, strict=True))
    )
    return rows.where(reduce(lambda one, other: one | other, missing)).select(
        f.col("_metadata.file_path").alias("file"), first.alias("column")
    )


def _refuse_empty_rows(empty: DataFrame) -> None:
    for row in empty.limit(1).collect():
        raise UsageError(
            f"'{unquote(row['file'])}': {is_empty_in(row['column'], 'some row')}, or not there at"
            " all; see docs/trace.md for the columns"
        )


def _files(spark: SparkSession, folder: str) -> list[str]:
    """List the files that count, by name, and refuse empty ones, which Spark would pass over."""
    listing = _listed(spark, folder)
    files = sorted(listing.inputFiles())
    if listing.count() < len(files):
        full = {row["path"] for row in listing.select("path").collect()}
        empty = next(file for file in files if unquote(file) not in map(unquote, full))
        raise UsageError(
            f"cannot read '{unquote(empty)}' as Parquet: it is empty; "
            "remove it or record the run again"
        )
    return files


def _listed(spark: SparkSession, folder: str) -> DataFrame:
    return spark.read.format("binaryFile").options(**FINISHED).load(folder)


def _rows_of_files(spark: SparkSession, folder: str) -> dict[str, dict[str, int]]:
    """Return how many events each file has, by kind and by name without ending; Spark counts them
    from footers alone. Empty files, which Spark would pass over, are refused."""
    files = unless_missing(lambda: _listed(spark, folder).inputFiles()) or []
    path = f.col("_metadata.file_path").alias("path")
    read = spark.read.schema(spark_schema(schema.EVENT_COLUMNS)).options(**CHECKED)
    counted = read.parquet(folder).groupBy(path).count().collect() if files else []
    if len(counted) < len(files):
        _files(spark, folder)
    rows: dict[str, dict[str, int]] = {}
    sizes = [(file, 0) for file in files] + [(row["path"], row["count"]) for row in counted]
    for file, size in sizes:
        named = _KIND.search(unquote(file))
        if named:
            rows.setdefault(named[1], {})[named[2]] = size
    for kind in rows.keys() - set(schema.KINDS):
        raise UsageError(unknown_kind(f"{folder}/event={kind}", kind))
    return rows


def _refuse_other_types(spark: SparkSession, folder: str, wanted: pa.Schema) -> None:
    """Read all footers in one job; only if something is wrong, more jobs look for the file."""
    if _other_type(spark, [folder], wanted) is None:
        return
    files = _files(spark, folder)
    while len(files) > 1:
        half = files[: len(files) // 2]
        files = half if _other_type(spark, half, wanted) else files[len(files) // 2 :]
    reason = _other_type(spark, files, wanted)
    raise UsageError(f"'{unquote(files[0])}': {reason}; see docs/trace.md for the columns")


def _other_type(spark: SparkSession, paths: list[str], wanted: pa.Schema) -> str | None:
    """Say what is wrong with the columns of these files, if anything is."""
    try:
        found = spark.read.options(mergeSchema=True, **CHECKED).parquet(*paths).schema
    except Exception as error:
        if condition_of(error) in _OF_ANOTHER_TYPE:
            return str(explained(error, paths[0]))
        raise
    types = {field.name: field.dataType for field in found}
    for field in spark_schema(wanted):
        actual = types.get(field.name, field.dataType)
        if actual.simpleString() != field.dataType.simpleString():
            return (
                f"column '{field.name}' is {actual.simpleString()}, "
                f"not {field.dataType.simpleString()}"
            )
    return None


def _runs(spark: SparkSession, folder: str) -> tuple[Run, ...]:
    rows = read_files(spark, folder, schema.RUN_COLUMNS)
    _refuse_empty_rows(_empty(rows, schema.REQUIRED_OF_RUNS))
    told = rows.select(
        f.col("_metadata.file_path").alias("file"), f.struct(*rows.columns).alias("row")
    )
    rows_by_file = (
        (unquote(found["file"]), [found["row"].asDict()])
        for found in told.orderBy("file").collect()
    )
    return tuple(runs_by_name(rows_by_file))
