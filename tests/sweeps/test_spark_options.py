"""Commands with --spark say what those without say, and refuse what makes no sense there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexgroup.cli.main import main
from flexgroup.cli.on_spark import SMALL_FOR_SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CYCLE = [
    *("explore", "--protocol", "dcc-published", "--processes", "4", "--no-minimise"),
    *("--message", "0,2", "--message", "0,2", "--message", "0,3", "--message", "2,3"),
]
CHAIN = [
    *("explore", "--protocol", "dcc", "--processes", "3", "--json"),
    *("--message", "0,1", "--message", "1,2"),
]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--master", "local[2]"], "only --spark DIR says to use Spark"),
        (["--spark", "out", "--save", "file"], "--save does not go with --spark"),
        (["--spark", "out", "--resume", "file"], "--resume does not go with --spark"),
        (["--spark", "out", "--max-memory", "9"], "--max-memory does not go with --spark"),
        (["--spark", "out", "--workers", "2"], "give the cores with --master"),
        (["--spark", "out", "--walks", "9", "--max-states", "9"], "bounded by --walks alone"),
        (["--spark", "out", "--master", "sc://host"], "needs Spark's driver in this process"),
        (["--spark", "out", "--servers", "3"], "--spark is not for --servers"),
    ],
)
def test_what_makes_no_sense_is_refused(
    options: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    base = ["explore"] if "--servers" in options else CYCLE
    assert main([*base, *options]) == 2
    assert words in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_one_schedule_needs_no_spark(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedules", "--replay", "file", "--spark", "out"]) == 2
    assert "--replay does not go with --spark" in capsys.readouterr().err


def test_a_scope_is_searched_as_it_is_here(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(CHAIN) == 0
    here = json.loads(capsys.readouterr().out)
    assert main([*CHAIN, "--spark", str(tmp_path)]) == 0
    there = json.loads(capsys.readouterr().out)
    assert there.pop("notes") == [SMALL_FOR_SPARK]
    for document in (here, there):
        for name in ("seconds", "bytes"):
            del document[name]
    here.pop("notes")
    assert there == here


def test_a_violation_is_told_and_ends_with_1(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*CYCLE, "--spark", str(tmp_path)]) == 1
    assert "acyclic order: violated after 11 steps" in capsys.readouterr().out
