"""DataFrames of the files of a trace set, and of rows with the columns of Arrow schemas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

FINISHED = {"pathGlobFilter": "*.parquet"}
"""The files that count; Spark passes over names that start with an underscore on its own."""


CHECKED = {**FINISHED, "parquet.page.verify-checksum.enabled": "true"}
"""How the files are read: a page that does not fit its checksum, where it has one, is an error."""


def rows_of(spark: SparkSession, rows: Iterable[Sequence[object]], columns: pa.Schema) -> DataFrame:
    """Return rows with these columns, which plans see: none can be left out."""
    table = pa.Table.from_pylist(
        [dict(zip(columns.names, row, strict=True)) for row in rows], columns
    )
    return spark.createDataFrame(table)


def nothing(spark: SparkSession, columns: pa.Schema) -> DataFrame:
    """Return no rows with these columns, in a form that plans can leave out."""
    return with_columns(spark.range(1).where(f.lit(False)), columns)


def spark_schema(columns: pa.Schema) -> StructType:
    """Return a schema of Arrow as one of Spark."""
    return from_arrow_schema(columns)


def read_files(spark: SparkSession, folder: str, columns: pa.Schema) -> DataFrame:
    """Return the rows of all finished files of a folder; a column that a file lacks is null."""
    return spark.read.schema(spark_schema(columns)).options(**CHECKED).parquet(folder)


def union(frames: Iterable[DataFrame]) -> DataFrame:
    """Return the rows of all these frames, of which there is at least one; columns go by place."""
    return reduce(lambda one, other: one.unionAll(other), frames)


def with_columns(rows: DataFrame, columns: pa.Schema) -> DataFrame:
    """Return the rows with these columns, of which those that they lack are null."""
    return rows.select(
        *(
            (f.col(field.name) if field.name in rows.columns else f.lit(None))
            .cast(field.dataType)
            .alias(field.name)
            for field in spark_schema(columns)
        )
    )
