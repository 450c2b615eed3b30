"""A Spark session of our own making works, on this machine's defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_spark_counts(spark: SparkSession) -> None:
    assert spark.range(1000).count() == 1000
