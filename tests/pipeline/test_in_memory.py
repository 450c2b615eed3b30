"""Small trace sets are judged and measured without Spark: the same words, tables and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from flexgroup.cli.main import main
from flexgroup.pipeline.reading import local_files

from ..trace.recorded import SCENARIO, event_file, record, tamper

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNORDERED = replace(SCENARIO, stack="best-effort", clients=8, duration=0.005)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("traces")
    record(directory)
    record(directory, UNORDERED)
    return directory


WITHOUT_SPARK = """
import sys
sys.modules.update(dict.fromkeys(("pyspark", "py4j"), None))
from flexgroup.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def here(*arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process where there is no Spark."""
    command = [sys.executable, "-c", WITHOUT_SPARK, *arguments, "--engine", "local"]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


COMMANDS = {
    "verify": (["--property", "acyclic order"], ("verdicts", "evidence")),
    "measure": ([], ("measures", "points", "packets")),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_found_is_what_spark_finds(
    spark: SparkSession, traces: Path, tmp_path: Path, command: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    options, tables = COMMANDS[command]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    done = here(command, str(traces), *options, "--out", str(ours), "--csv", "--json")
    code = main([command, str(traces), *options, "--out", str(theirs), "--csv", "--json"])
    assert (done.returncode, done.stderr) == (code, "")
    found, expected = json.loads(done.stdout), json.loads(capsys.readouterr().out)
    for document in (found, expected):
        del document["out"], document["seconds"]
    assert found == expected
    for name in tables:
        assert pq.read_table(ours / name).equals(pq.read_table(theirs / name))
        assert (ours / f"{name}.csv").read_text() == (theirs / f"{name}.csv").read_text()


def test_people_are_told_the_same(
    spark: SparkSession, traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []
    for engine in ("local", "spark"):
        command = ["verify", str(traces), "--property", "acyclic order", "--engine", engine]
        assert main(command) == 1
        *lines, times = capsys.readouterr().out.splitlines()
        assert "verifying took" in times
        printed.append(lines)
    assert printed[0] == printed[1]


def alias(rows: list[dict[str, Any]]) -> None:
    rows[0]["seq"] += 1 << 44


def negative(rows: list[dict[str, Any]]) -> None:
    rows[0]["process"] = -1


def twice(rows: list[dict[str, Any]]) -> None:
    rows[0]["destinations"] = [1, 1]


def again(rows: list[dict[str, Any]]) -> None:
    rows[1].update(origin=rows[0]["origin"], seq=rows[0]["seq"])


def same_step(rows: list[dict[str, Any]]) -> None:
    rows[1].update(process=rows[0]["process"], step=rows[0]["step"])


def elsewhere(rows: list[dict[str, Any]]) -> None:
    rows[0]["sent"] += 10**9


def fewer(rows: list[dict[str, Any]]) -> None:
    del rows[-1]


@pytest.mark.parametrize("engine", ["local", "spark"])
@pytest.mark.parametrize("command", ["verify", "measure"])
@pytest.mark.parametrize(
    ("kind", "spoil", "words"),
    [
        ("deliver", alias, "column 'seq' goes up to 1759218604"),
        ("deliver", negative, "column 'process' is negative in 1 row"),
        ("multicast", twice, "1 row with a destination twice"),
        ("multicast", again, "was multicast twice, and a message has one multicast"),
        ("deliver", same_step, "two runs with the same name are mixed"),
        ("receive", elsewhere, "1 row of packets that process"),
        ("send", fewer, "send events, and `runs` tells of"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_what_no_valid_trace_has_is_refused(
    spark: SparkSession, tmp_path: Path, kind: str, spoil: Any, words: str, command: str,
    engine: str, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """By whoever works on a trace, as by the validator."""
    tamper(event_file(tmp_path, kind, record(tmp_path)), spoil)
    assert main([command, str(tmp_path), "--engine", engine]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert "Traceback" not in error
    assert main(["validate", str(tmp_path)]) == 2


def test_what_needs_spark_is_told(
    traces: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*arguments: str) -> str:
        assert main(["verify", *arguments, "--engine", "local"]) == 2
        return capsys.readouterr().err

    assert "--master yarn needs Spark" in refused(str(traces), "--master", "yarn")
    assert "is in another file system" in refused("viewfs://n/traces")
    monkeypatch.setattr(local_files, "MOST_EVENTS", 3)
    monkeypatch.setattr(local_files.LocalFiles.runs_to_read, "__defaults__", (3,))
    assert "has too many events for --engine local" in refused(str(traces))
