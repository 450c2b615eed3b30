"""Opening a trace set with Spark: what is read, and what is refused with which words.

On this machine the files are looked at before Spark is asked; elsewhere Spark itself has to find
out. The same damage must be refused in both ways, so both are tried on the same directories.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.reading.duplicate_steps import duplicate_steps
from flexgroup.pipeline.reading.remote_files import empty_rows
from flexgroup.pipeline.reading.trace_set import TraceSet, open_remote, open_trace_set
from flexgroup.pipeline.spark.errors import readable
from flexgroup.trace.reader import load_history, read_run, read_runs

from ..trace.damages import (
    Damage,
    cut_in_half,
    damage_the_middle,
    make_empty,
    make_text,
    with_null,
    with_type,
    without,
)
from ..trace.recorded import SCENARIO, event_file, record, run_file, tamper

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Open = Callable[["SparkSession", str], TraceSet]


def open_through_spark(spark: SparkSession, path: str) -> TraceSet:
    """As a path that pyarrow cannot reach is opened."""
    return open_remote(spark, f"file:{path}")


BOTH = [open_trace_set, open_through_spark]
both_ways = pytest.mark.parametrize("opened", BOTH, ids=["here", "elsewhere"])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("recorded")
    for seed in (2, 1):
        record(directory, replace(SCENARIO, seed=seed))
    return directory


@pytest.fixture
def traces(recorded: Path, tmp_path: Path) -> Path:
    """A copy of a trace set with two runs, to be spoilt."""
    shutil.copytree(recorded, tmp_path / "traces")
    return tmp_path / "traces"


def first_run(directory: Path) -> str:
    return read_runs(directory)[0].run


@both_ways
def test_runs_are_numbered_by_name_and_events_carry_the_number(
    spark: SparkSession, recorded: Path, opened: Open
) -> None:
    traces = opened(spark, str(recorded))
    names = [run.run for run in read_runs(recorded)]
    rows = traces.runs.orderBy("number").select("number", "run", "processes", "seed").collect()
    assert [(row["number"], row["run"]) for row in rows] == list(enumerate(names))
    assert traces.kinds == {"multicast", "send", "receive", "deliver"}
    counted = {row["number"]: row["count"] for row in
               traces.events("deliver", "process").groupBy("number").count().collect()}  # fmt: skip
    assert counted == {
        number: len(load_history(recorded, read_run(recorded, name)).deliveries.process)
        for number, name in enumerate(names)
    }
    assert traces.events("crash", "step").collect() == []


@both_ways
def test_only_finished_runs_and_files_count(
    spark: SparkSession, traces: Path, opened: Open
) -> None:
    one, other = [run.run for run in read_runs(traces)]
    run_file(traces, one).unlink()
    (traces / "events" / "event=deliver" / "_half.parquet").write_text("in the making")
    (traces / "events" / "event=crash").mkdir()
    (traces / "runs" / "notes.txt").write_text("of somebody")
    opened_set = opened(spark, str(traces))
    assert [row["run"] for row in opened_set.runs.collect()] == [other]
    expected = pq.read_metadata(event_file(traces, "deliver", other)).num_rows
    assert opened_set.events("deliver", "step").count() == expected
    assert "crash" not in opened_set.kinds


@both_ways
def test_what_an_older_or_foreign_set_does_not_tell_has_a_default(
    spark: SparkSession, traces: Path, opened: Open
) -> None:
    run = first_run(traces)
    for column in ("world", "options", "clients", "outcome", "software", "seed"):
        without(column)(run_file(traces, run))
    without("payload_bytes")(event_file(traces, "deliver", run))
    [row] = opened(spark, str(traces)).runs.where(f"run = '{run}'").collect()
    assert (row["world"], row["clients"], row["outcome"]) == ("unknown", 0, "cut")
    assert (row["options"], row["software"], row["seed"]) == ("{}", "unknown", None)
    plain = read_run(traces, run)
    assert all(row[name] == getattr(plain, name) for name in ("world", "outcome", "clients"))


def test_a_path_may_hold_what_spark_takes_for_a_pattern(
    spark: SparkSession, recorded: Path, tmp_path: Path
) -> None:
    odd = tmp_path / "run {1} [a*b] 100%20"
    shutil.copytree(recorded, odd)
    traces = open_trace_set(spark, f"{odd}/")
    assert traces.events("deliver", "step").count() > 0
    assert open_trace_set(spark, recorded.as_uri()).runs.count() == 2


def refused(spark: SparkSession, opened: Open, directory: Path) -> str:
    before = sorted(directory.rglob("*"))
    with pytest.raises(UsageError) as caught:
        opened(spark, str(directory))
    assert sorted(directory.rglob("*")) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


@both_ways
def test_nothing_there(spark: SparkSession, tmp_path: Path, opened: Open) -> None:
    assert "does not exist; give the dir" in refused(spark, opened, tmp_path / "nowhere")
    if opened is open_trace_set:
        assert "holds no runs" in refused(spark, opened, tmp_path)
    (tmp_path / "runs").mkdir()
    assert "holds no runs (no runs/*.parquet)" in refused(spark, opened, tmp_path)


UNREADABLE = "cannot read '{path}' as Parquet"

HERE: list[tuple[Damage, str]] = [
    (make_text, UNREADABLE),
    (without("seq"), "'{path}' has no column 'seq'"),
    (with_type("time", pa.float64()), "'{path}': column 'time' is double, not int64"),
]
EVERYWHERE: list[tuple[Damage, str]] = [
    (cut_in_half, UNREADABLE),
    (make_empty, UNREADABLE),
    (without("step"), "column 'step'"),
    (with_type("process", pa.int64()), "'{path}': column 'process' is "),
    (with_type("time", pa.timestamp("ns")), "'{path}': "),
]
BAD_FILES = [
    pytest.param(damage, told, opened, id=f"{damage.__name__}-{opened.__name__}")
    for damages, ways in ((HERE, BOTH[:1]), (EVERYWHERE, BOTH))
    for damage, told in damages
    for opened in ways
]


@pytest.mark.parametrize(("damage", "told", "opened"), BAD_FILES)
def test_one_bad_file_of_events(
    spark: SparkSession, traces: Path, damage: Damage, told: str, opened: Open
) -> None:
    """Spark would read a missing column as nulls, and pass over an empty file."""
    path = event_file(traces, "deliver", first_run(traces))
    damage(path)
    line = re.sub("file:(//)?", "", refused(spark, opened, traces))
    assert told.format(path=path) in line


@both_ways
@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (cut_in_half, "cannot read"),
        (without("stack"), "column 'stack'"),
        (with_type("processes", pa.int64()), "column 'processes' is "),
        (with_null("schema_version"), "column 'schema_version'"),
    ],
    ids=["half", "missing", "type", "null"],
)
def test_one_bad_file_of_runs(
    spark: SparkSession, traces: Path, damage: Damage, told: str, opened: Open
) -> None:
    path = run_file(traces, first_run(traces))
    damage(path)
    line = refused(spark, opened, traces)
    assert told in line
    assert str(path) in line


@both_ways
def test_a_run_described_twice(spark: SparkSession, traces: Path, opened: Open) -> None:
    run = first_run(traces)
    again = run_file(traces, "zz-copy")
    shutil.copy(run_file(traces, run), again)
    line = refused(spark, opened, traces)
    assert f"{again}' describes run '{run}' again; keep one of them" in line


@both_ways
def test_a_newer_version(spark: SparkSession, traces: Path, opened: Open) -> None:
    path = run_file(traces, first_run(traces))
    tamper(path, lambda rows: rows[0].update(schema_version=3))
    assert "newer version (schema 3, this one reads 2)" in refused(spark, opened, traces)


@both_ways
def test_an_unknown_kind_of_event(spark: SparkSession, traces: Path, opened: Open) -> None:
    (traces / "events" / "event=deliver").rename(traces / "events" / "event=delivery")
    line = refused(spark, opened, traces)
    assert "event=delivery': there are no events of kind 'delivery'; the kinds are: " in line


def test_a_file_beside_the_own_file_of_a_run(spark: SparkSession, traces: Path) -> None:
    own = event_file(traces, "deliver", first_run(traces))
    shutil.copy(own, own.with_name("zz-copy.parquet"))
    assert refused(spark, open_trace_set, traces) == (
        f"'{own.with_name('zz-copy.parquet')}' holds events of run '{first_run(traces)}', and so "
        f"does '{own}'; two runs with the same name are mixed: keep one of them"
    )


def test_two_files_that_begin_with_the_same_event(spark: SparkSession, traces: Path) -> None:
    own = event_file(traces, "multicast", first_run(traces))
    for name in ("part-0.parquet", "part-1.parquet"):
        shutil.copy(own, own.with_name(name))
    own.unlink()
    assert re.search(
        r"part-0.parquet' and '.*part-1.parquet' both hold step \d+ of process \d+ of run",
        refused(spark, open_trace_set, traces),
    )


def test_a_file_with_the_name_of_another_run(spark: SparkSession, traces: Path) -> None:
    one, other = (event_file(traces, "send", run.run) for run in read_runs(traces))
    shutil.copy(one, other)
    line = refused(spark, open_trace_set, traces)
    assert f"'{other}' begins with events of run '{first_run(traces)}'" in line


def test_mixed_runs_are_found_row_by_row(spark: SparkSession, traces: Path) -> None:
    """Where a look at the first rows does not show it: the copy is of a later part."""
    run = first_run(traces)
    own = event_file(traces, "receive", run)
    rows = pq.ParquetFile(own).read()
    own.unlink()
    for name, part in (("part-0", rows), ("part-1", rows.slice(len(rows) - 1))):
        pq.write_table(part, own.with_name(f"{name}.parquet"))
    last = rows.slice(len(rows) - 1).to_pylist()[0]
    found = duplicate_steps(open_through_spark(spark, str(traces))).collect()
    assert [row.asDict() for row in found] == [
        {"number": 0, "process": last["process"], "step": last["step"], "rows": 2}
    ]


def test_a_sound_trace_has_no_step_twice_and_no_empty_row(
    spark: SparkSession, recorded: Path
) -> None:
    traces = open_trace_set(spark, str(recorded))
    assert duplicate_steps(traces).collect() == []
    assert empty_rows(spark, traces.location, traces.kinds).collect() == []


def test_damage_inside_a_file_is_named_when_it_is_read(spark: SparkSession, traces: Path) -> None:
    events = open_trace_set(spark, str(traces)).events("send", "origin", "step")
    damage_the_middle(event_file(traces, "send", first_run(traces)))
    told = r"cannot read '.*\.parquet' as Parquet; the file is"
    with pytest.raises(UsageError, match=told), readable(str(traces)):
        events.collect()


def test_a_store_that_cannot_be_reached(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match=r"Spark cannot read 'nosuch://traces': .*nosuch.*; check"):
        open_trace_set(spark, "nosuch://traces")
