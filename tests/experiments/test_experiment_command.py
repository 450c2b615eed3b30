"""The command `flexgroup experiment`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from flexgroup.cli.main import main
from flexgroup.experiments.catalogue import EXPERIMENTS

from .tiny import BROKEN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_violation_is_caught_from_the_sweep_to_the_diagram_in_the_report(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(EXPERIMENTS, BROKEN.name, BROKEN)
    out = tmp_path / "out"
    assert main(["experiment", BROKEN.name, "--out", str(out), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] == {"found": 0, "simulated": 1}
    (violation,) = [row for row in told["violations"] if row["property"] == "acyclic order"]
    assert "because process" in violation["explanation"]
    verdicts = pq.read_table(out / "tables" / "verdicts").to_pylist()
    violated = {row["property"] for row in verdicts if row["outcome"] == "violated"}
    assert "acyclic order" in violated
    evidence = pq.read_table(out / "tables" / "evidence").to_pylist()
    assert {row["event"] for row in evidence} >= {"multicast", "deliver"}
    report = Path(told["report"]).read_text(encoding="utf-8")
    assert violation["run"] in report
    assert 'class="space-time' in report


def test_the_list_tells_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "--list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in told] == list(EXPERIMENTS)
    assert main(["experiment", "--list"]) == 0
    assert "7.1a, 7.1b, 7.1c, 7.1d" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "name an experiment; flexgroup experiment --list tells them"),
        (["dcc"], "say where results go, for example: --out runs/dcc"),
        (["fig7", "--out", "x"], "there is no experiment 'fig7'; choose from: demo"),
        (["dcc", "--scale", "huge", "--out", "x"], "invalid choice: 'huge'"),
    ],
)
def test_bad_input_is_answered_in_one_line(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["experiment", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_a_directory_that_is_not_its_own_is_refused_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    assert main(["experiment", "demo", "--out", str(tmp_path), "--master", "no://where"]) == 2
    assert "is not empty and holds no experiment" in capsys.readouterr().err
