"""Results in a file system that only Spark can reach: HDFS, an object store, ...

Each table is a folder of Parquet, or of CSV, that Spark writes and commits as it does its own.
Several folders cannot be moved into place together there: what counts is written last.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.spark.errors import readable, unless_missing


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
