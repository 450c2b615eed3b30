"""A Spark session of our own making works, on this machine's defaults, and starts in silence."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from flexgroup.pipeline.spark.session import JAVA_OPTIONS, errors_only, times_told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_spark_counts(spark: SparkSession) -> None:
    assert spark.range(1000).count() == 1000


@pytest.mark.parametrize(("start", "rest", "is_said"), [(5.9, 3.1, True), (5.9, 6.1, False)])
def test_a_job_that_is_mostly_sparks_start_says_so(
    start: float, rest: float, is_said: bool
) -> None:
    told = times_told(start, "measuring", rest)
    assert told.startswith(f"Spark started in {start} s, measuring took {rest} s")
    assert told.endswith("most of it was Spark's start") == is_said


def test_while_it_starts_spark_prints_errors_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(JAVA_OPTIONS, "-Dmine=1")
    with errors_only():
        mine, ours = os.environ[JAVA_OPTIONS].split()
        assert mine == "-Dmine=1"
        assert ours.startswith("-Dlog4j2.configurationFile=file:")
    assert os.environ[JAVA_OPTIONS] == "-Dmine=1"


@pytest.mark.parametrize(
    ("name", "value"), [("SPARK_CONF_DIR", "/etc/spark"), (JAVA_OPTIONS, "-Dlog4j2.level=info")]
)
def test_a_configuration_of_the_users_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    before = dict(os.environ)
    with errors_only():
        assert dict(os.environ) == before
