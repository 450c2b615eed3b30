"""Watching with Spark: a trace set that grows between and during batches, and restarts."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as f

from flexgroup.cli.main import main
from flexgroup.cli.watch import Printer, follow
from flexgroup.core.errors import UsageError
from flexgroup.pipeline.watch.stream import TraceSetWatch
from flexgroup.pipeline.watch.violation_counts import WATCHED
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome
from flexgroup.trace.reader import load_history, read_runs
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DISORDERLY = Scenario("fifo", 4, 6, "random:2", "lan", duration=0.01)
"""Promises no total order, and has none."""

UNRELIABLE = Scenario(
    "best-effort",
    *(4, 3, "random:3", "lan:loss=0.1"),
    duration=0.005,
    faults=Faults(crashes=("0@2ms",)),
)
ORDERLY = Scenario("skeen", 4, 3, "random:2", "lan", duration=0.01)

Found = dict[tuple[str, str], int]


def found_by_checking(traces: Path) -> Found:
    return {
        (run.run, verdict.property): verdict.violations
        for run in read_runs(traces)
        for verdict in check(load_history(traces, run), WATCHED)
        if verdict.outcome is Outcome.VIOLATED
    }


def found_by_watching(spark: SparkSession, watch: TraceSetWatch) -> Found:
    """The last number of violations told of each run and property; none was told twice."""
    rows = spark.read.parquet(watch.violations).orderBy("batch").collect()
    assert len({(row.run, row.property, row.violations) for row in rows}) == len(rows)
    assert all(json.loads(row.witness) for row in rows)
    return {(row.run, row.property): row.violations for row in rows}


def watch_once(spark: SparkSession, traces: Path, out: Path) -> TraceSetWatch:
    watch = TraceSetWatch(spark, str(traces), str(out), Printer(as_json=True).tell, WATCHED)
    follow(watch, once=True, until_finished=False, stopping=lambda: False)
    return watch


def arrive(recorded: Path, traces: Path, share: float) -> None:
    """Copy what is recorded, up to a share of the parts of each run, the last files first."""
    for path in sorted(recorded.rglob("*.parquet"), reverse=True):
        target = traces / path.relative_to(recorded)
        _, is_part, number = path.stem.partition("-part-")
        early = int(number) < share * 10 if is_part else "started" in path.parts
        if (share == 1 or early) and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    traces = tmp_path_factory.mktemp("recorded")
    record_scenario(DISORDERLY, traces, part_rows=60)
    record_scenario(UNRELIABLE, traces, part_rows=60)
    record_scenario(ORDERLY, traces)
    return traces


@pytest.mark.slow
def test_a_growing_trace_set_is_watched_in_passes(
    spark: SparkSession, recorded: Path, tmp_path: Path
) -> None:
    """Some parts now, the rest later: each pass goes on where the one before it stopped."""
    traces, out = tmp_path / "any name", tmp_path / "out"
    arrive(recorded, traces, share=0.4)
    watch = watch_once(spark, traces, out)
    assert watch.unfinished == 2
    early = found_by_watching(spark, watch)
    arrive(recorded, traces, share=1)
    watch = watch_once(spark, traces, out)
    assert watch.unfinished == 0
    expected = found_by_checking(traces)
    assert found_by_watching(spark, watch) == expected
    assert {property_ for _, property_ in expected} > {"acyclic order", "validity"}
    assert (DISORDERLY.run, "acyclic order") in early.keys() & expected.keys()
    # Of what is over, nothing is carried along, and what comes late does not begin it again.
    part = traces / "events" / "event=deliver" / f"{DISORDERLY.run}-part-000000.parquet"
    for number in (997, 998):
        shutil.copy(part, part.with_name(f"{DISORDERLY.run}-part-000{number}.parquet"))
        watch = watch_once(spark, traces, out)
        assert watch.unfinished == 0
    kept = spark.read.parquet(str(out / "state"))
    last = kept.agg(f.max("batch")).collect()[0][0]
    assert {row.run for row in kept.where(f.col("batch") == last).collect()} == {DISORDERLY.run}
    assert found_by_watching(spark, watch) == expected


KILLED = """
import os, signal, sys
from flexgroup.cli.main import main
from flexgroup.core.errors import UsageError
from flexgroup.pipeline.watch.stream import TraceSetWatch
TraceSetWatch._tick = lambda watch, batch: os.kill(os.getpid(), signal.SIGKILL)
main(["watch", *sys.argv[1:]])
"""


@pytest.mark.slow
def test_a_restart_after_a_crash_loses_nothing_and_tells_nothing_twice(
    spark: SparkSession, recorded: Path, tmp_path: Path
) -> None:
    """Killed when a batch has written its results, and Spark has not yet noted that it is done."""
    traces, out = tmp_path / "traces", tmp_path / "out"
    arrive(recorded, traces, share=1)
    names = [word for name in WATCHED for word in ("--property", name)]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(traces), "--once", "--out", str(out), *names],
        capture_output=True,
        text=True,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (out / "violations" / "batch=0").exists()
    assert not (out / "checkpoint" / "commits" / "0").exists()
    watch = watch_once(spark, traces, out)
    assert found_by_watching(spark, watch) == found_by_checking(traces)


def test_a_simulation_is_watched_while_it_runs(spark: SparkSession, tmp_path: Path) -> None:
    """The directory is empty at first, and watching ends by itself when the run is over."""
    simulation = Thread(target=record_scenario, args=(DISORDERLY, tmp_path, False, None, 60))
    watch = TraceSetWatch(
        spark, str(tmp_path), str(tmp_path / "_watch"), Printer(False).tell, WATCHED
    )
    assert watch.unfinished is None
    simulation.start()
    follow(watch, once=False, until_finished=True, stopping=lambda: False)
    simulation.join()
    assert found_by_watching(spark, watch) == found_by_checking(tmp_path)


def test_a_damaged_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "events" / "event=deliver" / "damaged.parquet"
    file.parent.mkdir(parents=True)
    file.write_text("not Parquet")
    watch = TraceSetWatch(spark, str(tmp_path), str(tmp_path / "_watch"), Printer(False).tell)
    with pytest.raises(UsageError, match=r"damaged.parquet' as Parquet"), watch.plain_errors():
        follow(watch, once=True, until_finished=False, stopping=lambda: False)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("nowhere", "nowhere' is not a directory; give the directory of a trace set"),
        ("a[1]", "a[1]' cannot be watched with Spark, because the path has one of the signs"),
    ],
)
def test_directories_that_cannot_be_watched_are_refused(
    name: str, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a[1]").mkdir()
    assert main(["watch", str(tmp_path / name)]) == 2
    assert complaint in capsys.readouterr().err


def test_spark_connect_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(tmp_path), "--master", "sc://host"]) == 2
    assert "watching needs Spark's driver in this process" in capsys.readouterr().err
