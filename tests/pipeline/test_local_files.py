"""What the footers of a trace set tell before Spark starts: which runs one task can read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from flexgroup.pipeline.reading.local_files import A_FILE, LocalFiles, look_here

from ..trace.recorded import SCENARIO, event_file, record, run_file, tamper


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    return sorted(record(tmp_path, replace(SCENARIO, seed=seed)) for seed in (1, 2))


def look(directory: Path) -> LocalFiles:
    files = look_here(str(directory))
    assert files is not None
    return files


def rows_of(directory: Path, run: str) -> int:
    kinds = ("multicast", "send", "receive", "deliver")
    return sum(pq.read_metadata(event_file(directory, kind, run)).num_rows for kind in kinds)


def test_the_events_of_each_run_are_counted(tmp_path: Path, runs: list[str]) -> None:
    expected = {run: rows_of(tmp_path, run) for run in runs}
    assert look(tmp_path).runs_to_read() == expected


def test_runs_with_too_many_events_are_left_to_spark(tmp_path: Path, runs: list[str]) -> None:
    most = max(rows_of(tmp_path, run) for run in runs)
    assert look(tmp_path).runs_to_read(most).keys() == set(runs)
    assert look(tmp_path).runs_to_read(most - 1).keys() < set(runs)


def test_a_run_is_not_searched_for_in_the_files_of_others(tmp_path: Path, runs: list[str]) -> None:
    event_file(tmp_path, "send", runs[0]).unlink()
    tamper(run_file(tmp_path, runs[0]), lambda rows: rows[0].update(events=None))
    assert "send" not in look(tmp_path).kinds_of(runs[0])
    assert "send" in look(tmp_path).kinds_of(runs[1])


def test_files_of_several_runs_are_read_for_each_of_them(tmp_path: Path, runs: list[str]) -> None:
    own = [event_file(tmp_path, "deliver", run) for run in runs]
    deliveries = [pq.ParquetFile(path).read() for path in own]
    before = look(tmp_path).runs_to_read()
    for path, rows in zip(own, deliveries, strict=True):
        pq.write_table(rows, path.with_name(f"part-{path.name}"))
        path.unlink()
    everything = sum(len(rows) for rows in deliveries) + 2 * A_FILE
    assert look(tmp_path).runs_to_read() == {
        run: before[run] - len(rows) + everything
        for run, rows in zip(runs, deliveries, strict=True)
    }
    assert look(tmp_path).runs_to_read(2 * everything - 1) == {}


def test_another_place_is_left_to_spark() -> None:
    assert look_here("hdfs://somewhere/traces") is None
