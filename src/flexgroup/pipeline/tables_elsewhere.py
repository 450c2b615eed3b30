"""Results in a file system that only Spark can reach: HDFS, an object store, ...

Each table is a folder of Parquet, or of CSV, that Spark writes and commits as it does its own.
Several folders cannot be moved into place together there: what counts is written last.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import partial
from urllib.parse import urlsplit

import pyarrow as pa
from pyspark.sql import SparkSession

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.object_stores import is_store
from flexgroup.pipeline.spark.errors import readable, unless_missing
from flexgroup.pipeline.spark.session import executors_are_here


def can_reach(spark: SparkSession, location: str) -> bool:
    """Tell whether a location is not in a store that pyarrow knows and this Spark does not; of a
    Spark that is elsewhere nobody knows, so it has to try."""
    if not is_store(location) or not executors_are_here(spark):
        return True
    java, context = spark._jvm, spark.sparkContext._jsc
    assert java is not None
    assert context is not None
    try:
        java.org.apache.hadoop.fs.FileSystem.getFileSystemClass(
            urlsplit(location).scheme, context.hadoopConfiguration()
        )
    except Exception:  # whatever is missing, Spark will not do without it
        return False
    return True


def refuse_to_overwrite_there(spark: SparkSession, place: str, names: Iterable[str]) -> None:
    """Raise a UsageError if one of these tables is there already, or if nobody can write there."""
    files = spark.read.format("binaryFile")
    with readable(place):
        for folder in [f"{place}/{name}{end}" for name in names for end in ("", ".csv")]:
            if unless_missing(partial(files.load, folder)) is not None:
                raise UsageError(
                    f"'{folder}' exists; give --force to overwrite it, or another directory"
                )


def write_tables_there(
    spark: SparkSession, tables: Mapping[str, pa.Table], place: str, with_csv: bool = False
) -> None:
    """Write each table as a folder with one file; those of the same names give way."""
    with readable(place):
        for name, table in tables.items():
            rows = spark.createDataFrame(table).coalesce(1)
            rows.write.mode("overwrite").parquet(f"{place}/{name}")
            if with_csv:
                texts = spark.createDataFrame(_lists_as_texts(table)).coalesce(1)
                texts.write.mode("overwrite").csv(f"{place}/{name}.csv", header=True)


def _lists_as_texts(table: pa.Table) -> pa.Table:
    for place, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            texts = [value and json.dumps(value) for value in table.column(place).to_pylist()]
            table = table.set_column(place, field.name, pa.array(texts, pa.string()))
    return table
