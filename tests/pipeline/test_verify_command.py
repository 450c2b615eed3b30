"""The command `flexgroup verify`: what it prints, what it writes, what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from flexgroup.cli.main import main
from flexgroup.pipeline.spark import session

from ..trace.damages import damage_the_middle
from ..trace.recorded import SCENARIO, event_file, record

UNORDERED = replace(SCENARIO, stack="best-effort", clients=8, duration=0.005)
"""Promises no order, and keeps none."""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("traces")
    record(directory)
    record(directory, UNORDERED)
    return directory


@pytest.mark.usefixtures("spark")
def test_what_stacks_promise_is_checked_and_the_time_told(
    traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(traces)]) == 0
    printed = capsys.readouterr().out
    assert "acyclic order" in printed  # Skeen promises it
    assert "violated" in printed.splitlines()[0] + printed.splitlines()[1]  # a column of counts
    assert "Spark started in" in printed


@pytest.mark.usefixtures("spark")
def test_a_violation_is_explained_and_its_events_are_kept(
    traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "tables"
    command = ["verify", str(traces), "--property", "acyclic order", "--out", str(out)]
    assert main(command) == 1
    printed = capsys.readouterr().out
    assert f"run {UNORDERED.run}" in printed
    assert "a < b, because process" in printed

    verdicts = {row["run"]: row for row in pq.read_table(out / "verdicts").to_pylist()}
    assert verdicts[SCENARIO.run]["outcome"] == "holds"
    assert verdicts[UNORDERED.run]["outcome"] == "violated"
    witness = json.loads(verdicts[UNORDERED.run]["witness"])
    evidence = pq.read_table(out / "evidence").to_pylist()
    assert {row["event"] for row in evidence} == {"multicast", "send", "receive", "deliver"}
    assert {f"{row['origin']}.{row['seq']}" for row in evidence} == {
        step["message"] for step in witness
    }

    assert main(command) == 2
    assert "--force" in capsys.readouterr().err


@pytest.mark.usefixtures("spark")
def test_json_is_one_document(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(traces), "--property", "integrity", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [verdict["property"] for verdict in document["verdicts"]] == ["integrity"] * 2
    assert set(document["seconds"]) == {"start", "verify"}


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong with the input is said at once, and not after Spark has started."""

    def start(*_: object) -> None:
        raise AssertionError("Spark was started for bad input")

    monkeypatch.setattr(session, "start", start)


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--property", "politeness"], "there is no property 'politeness'"),
        (["--property", "integrity", "--check", "all"], "contradict each other"),
    ],
)
def test_bad_options(
    traces: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(traces), *arguments]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.usefixtures("without_spark")
def test_an_empty_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(tmp_path)]) == 2
    assert "holds no runs" in capsys.readouterr().err


@pytest.mark.usefixtures("spark")
def test_damage_inside_a_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = event_file(tmp_path, "send", record(tmp_path))
    damage_the_middle(damaged)
    assert main(["verify", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert f"cannot read '{damaged}' as Parquet" in told
    assert "remove it or record the run again" in told
    assert "Traceback" not in told


@pytest.mark.usefixtures("spark")
def test_two_runs_mixed_under_one_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = record(tmp_path)
    once = event_file(tmp_path, "deliver", run)
    table = pq.read_table(once, partitioning=None)
    pq.write_table(table, once.with_name("all.parquet"))
    pq.write_table(table, once.with_name("more.parquet"))
    once.unlink()
    assert main(["verify", str(tmp_path)]) == 2
    assert "two runs with the same name are mixed" in capsys.readouterr().err
