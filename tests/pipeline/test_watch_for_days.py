"""Watching may go on for days: what it keeps is bounded, and it tells how it is doing."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexgroup.cli.watch import Printer, follow
from flexgroup.core.errors import UsageError
from flexgroup.pipeline.in_memory.verdict_table import VERDICTS, verdict_table
from flexgroup.pipeline.watch import kept_tables
from flexgroup.pipeline.watch.kept_tables import KeptTables, Rows, last_told
from flexgroup.pipeline.watch.stream import TraceSetWatch
from flexgroup.pipeline.watch.violation_counts import WATCHED
from flexgroup.pipeline.watch.watch_metrics import COUNTERS, GAUGES, WatchFigures, WatchMetrics
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome
from flexgroup.trace.reader import load_history, read_runs
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DISORDERLY = Scenario("fifo", 4, 6, "random:2", "lan", duration=0.005)
"""Promises no total order, and has none."""


def row(run: str, batch: int, violations: int = 1) -> dict[str, object]:
    told = {"run": run, "property": "acyclic order", "outcome": "violated", "witness": "[]"}
    return {**told, "violations": violations, "explanation": "", "batch": batch}


def told(rows: Rows) -> list[tuple[str, int]]:
    return [(row["run"], row["violations"]) for row in rows]


def test_the_last_row_of_each_run_that_goes_on_is_kept() -> None:
    rows = [row("a", 0, 1), row("b", 1, 1), row("a", 2, 5)]
    assert told(last_told(rows, going_on={"a", "b"}, most=0)) == [("b", 1), ("a", 5)]


def test_of_runs_that_are_over_the_last_ones_are_kept() -> None:
    rows = [row("old", 0), row("open", 1), row("new", 2)]
    assert told(last_told(rows, going_on={"open"}, most=1)) == [("open", 1), ("new", 1)]


def test_a_table_with_many_folders_becomes_one_file(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_tables, "FOLDERS", 3)
    tables, place = KeptTables(spark, f"file:{tmp_path}"), tmp_path / "violations"
    for batch, run in ((2, "a"), (4, "b"), (7, "a"), (9, "c")):
        one = verdict_table([row(run, batch, violations=batch)])
        spark.createDataFrame(one).coalesce(1).write.parquet(f"file:{place}/batch={batch}")
    before = spark.read.parquet(f"file:{place}").count()
    assert tables.make_small("violations", VERDICTS, 9, lambda rows: rows[1:]) is not None
    assert tables.batches("violations") == [7, 9]
    assert len(tables.names("violations/batch=7")) == 1
    rows = spark.read.parquet(f"file:{place}").collect()
    assert sorted((row.run, row.violations) for row in rows) == [("a", 7), ("b", 4), ("c", 9)]
    assert before == 4
    assert tables.make_small("violations", VERDICTS, 9, lambda rows: rows) is None


@pytest.mark.slow
def test_runs_that_end_leave_a_bounded_number_of_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(kept_tables, "FOLDERS", 2)
    traces, out = tmp_path / "traces", tmp_path / "out"
    printer = Printer(as_json=True)
    files, states = [], []
    for seed in range(1, 5):
        record_scenario(replace(DISORDERLY, seed=seed), traces)
        watch = TraceSetWatch(
            spark, str(traces), str(out), printer.tell, WATCHED,
            figures_told=printer.tell_figures,
        )  # fmt: skip
        follow(watch, once=True, until_finished=False, stopping=lambda: False)
        tables = KeptTables(spark, f"file:{out}")
        files.append({name: len(tables.names(name)) for name in ("violations", "over", "ticks")})
        states.append(watch.figures.state_bytes)
    assert max(files[-1].values()) <= 4, files
    assert states[-1] == 0
    rows = spark.read.parquet(watch.violations).orderBy("batch").collect()
    found = {(row.run, row.property): row.violations for row in rows}
    expected = {
        (run.run, verdict.property): verdict.violations
        for run in read_runs(traces)
        for verdict in check(load_history(traces, run), WATCHED)
        if verdict.outcome is Outcome.VIOLATED
    }
    assert found == expected
    assert len({run for run, _ in expected}) > 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    figures = [line["metrics"] for line in lines if "metrics" in line]
    assert figures[-1]["runs_over"] == 1
    assert max(figure["events"] for figure in figures) > 50
    assert {line["run"] for line in lines if line.get("over")} == {
        replace(DISORDERLY, seed=seed).run for seed in range(1, 5)
    }


def test_figures_are_served_as_collectors_read_them() -> None:
    figures = WatchFigures(events=7, violations=2, runs_open=3)
    port = WatchMetrics(figures).serve("127.0.0.1", 0)
    figures.events += 1
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        page = answer.read().decode()
    assert "flexgroup_watch_events_total 8.0" in page
    assert "flexgroup_watch_runs_open 3.0" in page
    assert COUNTERS.keys() | GAUGES.keys() == figures.to_json().keys()
    with pytest.raises(UsageError, match="cannot serve metrics at"):
        WatchMetrics(figures).serve("127.0.0.1", port)


def test_the_lag_is_that_of_the_oldest_file() -> None:
    figures = WatchFigures()
    figures.batch_done(events=10, begun=0.0, oldest=0)
    assert figures.lag_seconds > 1e9
    assert figures.events_per_second == pytest.approx(10 / figures.batch_seconds)
