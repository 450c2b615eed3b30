"""Trace sets as Spark sees them: runs and events as DataFrames.

Events of runs that have no row in `runs` are left out: such a run is still being written, or its
writer was killed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from flexgroup.trace import schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class TraceSet:
    """A directory of runs. `runs` has the columns of the schema, and `number`: 0, 1, ... in the
    order of the names, which is shorter to shuffle than a name."""

    spark: SparkSession
    path: str
    runs: DataFrame
    kinds: frozenset[str]
    """The kinds of events that were recorded."""

    def events(self, kind: str, *columns: str) -> DataFrame:
        """The given columns of the events of one kind, and the `number` of their run."""
        from pyspark.sql import functions as f

        numbers = f.broadcast(self.runs.select("run", "number"))
        return self._recorded(kind).join(numbers, "run").select("number", *columns)

    def _recorded(self, kind: str) -> DataFrame:
        columns = spark_schema(schema.EVENT_COLUMNS)
        if kind not in self.kinds:
            return self.spark.createDataFrame([], columns)
        return self.spark.read.schema(columns).parquet(f"{self.path}/events/event={kind}")


def spark_schema(columns: pa.Schema) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(columns)


def open_trace_set(spark: SparkSession, path: str) -> TraceSet:
    from pyspark.sql import functions as f

    runs = spark.read.schema(spark_schema(schema.RUN_COLUMNS)).parquet(f"{path}/runs")
    numbered = runs.repartition(1).sortWithinPartitions("run")
    numbered = numbered.withColumn("number", f.monotonically_increasing_id().cast("int"))
    return TraceSet(spark, path.rstrip("/"), numbered, frozenset(schema.KINDS))
