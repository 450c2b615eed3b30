"""Traces and results in file systems that only Spark can reach, and traces in tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexgroup.cli.main import main
from flexgroup.core.errors import UsageError
from flexgroup.pipeline.measure import Measured
from flexgroup.pipeline.reading.frames_given import trace_set_of
from flexgroup.pipeline.reading.trace_set import TraceSet, open_trace_set
from flexgroup.pipeline.verify import verify

from ..trace.recorded import record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("recorded") / "traces"
    record(directory)
    return directory


@pytest.fixture(scope="module")
def store(spark: SparkSession, traces: Path) -> str:
    """A file system of Hadoop that nobody but Spark knows: a view of a folder of this machine."""
    java = spark.sparkContext._jsc
    assert java is not None
    link = "fs.viewfs.mounttable.store.link./all"
    java.hadoopConfiguration().set(link, traces.parent.as_uri())
    return "viewfs://store/all"


def test_results_go_where_spark_can_write(
    spark: SparkSession, store: str, traces: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    command = ["verify", f"{store}/traces", "--out", f"{store}/tables", "--csv", "--json"]
    assert main(command) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["out"] == f"{store}/tables"
    verdicts = spark.read.parquet(str(traces.parent / "tables" / "verdicts")).collect()
    assert {row.property for row in verdicts} == {row["property"] for row in document["verdicts"]}
    lines = spark.read.csv(str(traces.parent / "tables" / "verdicts.csv"), header=True)
    assert lines.count() == len(verdicts)
    assert main(command) == 2
    assert f"'{store}/tables/verdicts' exists; give --force" in capsys.readouterr().err
    assert main([*command, "--force"]) == 0
    assert list(tmp_path.iterdir()) == []


def test_no_folder_is_called_like_another_file_system(
    spark: SparkSession, traces: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["verify", str(traces), "--out", "nosuch://bucket/tables"]) == 2
    assert "Spark cannot read 'nosuch://bucket/tables'" in capsys.readouterr().err
    assert main(["simulate", "--protocol", "skeen", "--out", "s3a://bucket/traces"]) == 2
    assert "'s3a://bucket/traces' is in another file system" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


KINDS = ("multicast", "send", "receive", "deliver")


@pytest.fixture(scope="module")
def by_kind(spark: SparkSession, traces: Path) -> dict[str, DataFrame]:
    return {kind: spark.read.parquet(f"{traces}/events/event={kind}") for kind in KINDS}


@pytest.fixture(scope="module")
def runs(spark: SparkSession, traces: Path) -> DataFrame:
    return spark.read.parquet(f"{traces}/runs")


@pytest.fixture
def names(spark: SparkSession, runs: DataFrame, traces: Path) -> Iterator[tuple[str, str]]:
    runs.createOrReplaceTempView("my_runs")
    spark.read.parquet(f"{traces}/events").createOrReplaceTempView("my_events")
    yield "my_runs", "my_events"
    for name in ("my_runs", "my_events"):
        spark.catalog.dropTempView(name)


def judged(traces: TraceSet) -> list[tuple[str, ...]]:
    rows = verify(traces).select("property", "outcome", "explanation").collect()
    return sorted(tuple(row) for row in rows)


def test_tables_are_judged_and_measured_as_files_are(
    spark: SparkSession, traces: Path, names: tuple[str, str]
) -> None:
    in_tables, in_files = trace_set_of(spark, *names), open_trace_set(spark, str(traces))
    assert in_tables.kinds == in_files.kinds
    assert judged(in_tables) == judged(in_files)
    measured = Measured(in_tables)
    assert measured.measures.equals(Measured(in_files).measures)
    assert measured.frame("points").count() == 1


def test_frames_are_taken_by_kind(
    spark: SparkSession, runs: DataFrame, by_kind: dict[str, DataFrame]
) -> None:
    traces = trace_set_of(spark, runs, by_kind)
    assert {row.outcome for row in verify(traces, ["integrity"]).collect()} == {"holds"}


def test_tables_that_are_no_traces_are_refused(
    spark: SparkSession, runs: DataFrame, by_kind: dict[str, DataFrame]
) -> None:
    def refused(runs: DataFrame | str, events: dict[str, DataFrame] | DataFrame | str) -> str:
        with pytest.raises(UsageError) as caught:
            trace_set_of(spark, runs, events)
        return str(caught.value)

    deliveries = by_kind["deliver"]
    assert "no column 'stack'" in refused(runs.drop("stack"), by_kind)
    assert "column 'step' is double, not bigint" in refused(
        runs, {"deliver": deliveries.withColumn("step", deliveries.step.cast("double"))}
    )
    assert "there are no events of kind 'delivery'" in refused(runs, {"delivery": deliveries})
    assert "no column 'event' that tells" in refused(runs, deliveries)
    assert "the table of runs is empty" in refused(runs.limit(0), by_kind)
    assert "my_table" in refused("my_table", by_kind)


def test_kinds_that_did_not_occur_are_left_out_of_plans(spark: SparkSession, traces: Path) -> None:
    crashes = open_trace_set(spark, str(traces)).events("crash", "process")
    plan = crashes._jdf.queryExecution().optimizedPlan().toString()
    assert "LocalRelation <empty>" in plan
    assert "RDD" not in plan
