"""The command `flexgroup measure`: what it prints, what it writes, what it refuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from flexgroup.cli.main import main
from flexgroup.pipeline import result_tables

from ..trace.damages import damage_the_middle
from ..trace.recorded import SCENARIO, event_file, record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("measures", "packets", "points")


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("traces")
    record(directory)
    return directory


def test_tables_are_written_as_parquet_and_csv_and_points_printed(
    spark: SparkSession, traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "tables"
    out.mkdir()
    (out / "points.csv").write_text("of an earlier day")
    assert main(["measure", str(traces), "--out", str(out), "--csv", "--force"]) == 0

    printed = capsys.readouterr().out
    assert "skeen" in printed
    assert "Spark started in" in printed
    assert sorted(path.name for path in out.iterdir()) == sorted(
        [*NAMES, *(f"{name}.csv" for name in NAMES)]
    )
    for name in NAMES:
        table = pq.read_table(out / name)
        header, *rows = csv.reader((out / f"{name}.csv").read_text().splitlines())
        assert header == table.column_names
        assert len(rows) == table.num_rows > 0


def test_json_is_one_document(
    spark: SparkSession, traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["measure", str(traces), "--json"]) == 0

    document = json.loads(capsys.readouterr().out)
    (point,) = document["points"]
    assert (point["stack"], point["workload"], point["runs"]) == (
        SCENARIO.stack,
        SCENARIO.workload,
        1,
    )
    assert point["throughput"] > 0
    assert point["throughput_ci95"] is None
    assert document["seconds"]["measure"] > 0


def test_tables_that_exist_are_kept(
    traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "points").mkdir()
    assert main(["measure", str(traces), "--out", str(tmp_path)]) == 2
    assert "--force" in capsys.readouterr().err


def test_what_fails_leaves_nothing(
    spark: SparkSession, traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(result_tables, "_write_csv", fail)
    assert main(["measure", str(traces), "--out", str(tmp_path), "--csv"]) == 130
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(
    spark: SparkSession, traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main(["measure", str(traces), "--out", str(tmp_path / "file")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_damage_inside_a_file_is_named(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = event_file(tmp_path, "receive", record(tmp_path))
    damage_the_middle(damaged)
    assert main(["measure", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert f"cannot read '{damaged}' as Parquet" in told
    assert "Traceback" not in told


def test_csv_needs_a_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "anywhere", "--csv"]) == 2
    assert "--out" in capsys.readouterr().err


def test_a_trace_set_that_is_not_there(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["measure", str(tmp_path)]) == 2
    assert "holds no runs" in capsys.readouterr().err
