"""A run has one throughput and one mean latency, whoever tells them, and it is said which."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from flexgroup.cli.main import main
from flexgroup.metrics.catalogue import WHICH
from flexgroup.metrics.tables import points
from flexgroup.pipeline.in_memory.measures import MeasuredHere
from flexgroup.pipeline.reading.local_files import LocalFiles, look_here
from flexgroup.report.contents import Contents
from flexgroup.report.measures import measures_markup
from flexgroup.runs.simulated import SimulatedRun, simulate

STRUCK = (
    "simulate --protocol reliable --processes 5 --clients 6 --workload random:3 --duration 0.05 "
    "--crash 3@30ms --detection 1ms"
).split()
"""A run in which clients stop, so that every way of counting would tell something else."""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("one") / "traces"
    assert main([*STRUCK, "--out", str(directory), "--json"]) == 0
    return directory


def test_simulate_tells_the_metrics_of_the_trace(
    traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (row,) = MeasuredHere(here(traces)).measures.to_pylist()
    assert main([*STRUCK, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["throughput"] == row["throughput"] > 0
    assert told["mean_latency"] == row["latency_last_mean"] > 0
    assert told["multicasts"] == row["messages"]
    assert told["answered"] == row["messages"] - row["unanswered"]
    assert main(STRUCK) == 0
    line = re.search(r"throughput .*", capsys.readouterr().out)
    assert line is not None
    assert line[0] == (
        f"throughput {row['throughput']:,.0f} messages/s, mean latency "
        f"{row['latency_last_mean'] * 1000:.3f} ms until the last delivery, "
        "both from 0.01 to 0.05 s"
    )


def test_measure_shows_the_same_and_says_which(
    traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = simulate_again()
    assert main(["measure", str(traces), "--engine", "local"]) == 0
    out = capsys.readouterr().out
    assert f"{run.metrics['throughput']:,.0f}" in out
    assert f"{(run.metrics['latency_last_mean'] or 0) * 1000:.3f}" in out
    assert "trimmed" not in out
    assert WHICH in " ".join(out.split())


def test_the_report_shows_the_same_and_says_which(traces: Path) -> None:
    measured = MeasuredHere(here(traces))
    nothing = pa.table({})
    found = measured.measures
    contents = Contents(traces, {}, nothing, nothing, found, points(found), ())
    page = measures_markup(contents)
    assert WHICH[1:] in page
    assert "trimmed" not in page


def test_the_mean_latency_is_that_of_the_messages_that_notebooks_list() -> None:
    run = simulate_again()
    table = run.latencies
    counted = table[table.measured & table.answered]
    assert 0 < len(counted) < len(table)
    assert counted["last"].mean() == pytest.approx(run.metrics["latency_last_mean"])


def test_what_was_not_read_is_not_told_in_another_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*STRUCK, "--out", str(tmp_path), "--check", "none"]) == 0
    out = capsys.readouterr().out
    assert "throughput" not in out
    assert f"flexgroup measure {tmp_path} tells what it achieved" in out


def here(traces: Path) -> LocalFiles:
    found = look_here(str(traces))
    assert found is not None
    return found


def simulate_again() -> SimulatedRun:
    return simulate(
        "reliable", processes=5, clients=6, workload="random:3", duration=0.05, crash="3@30ms",
        detection="1ms",
    )  # fmt: skip
