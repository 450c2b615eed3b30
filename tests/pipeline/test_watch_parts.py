"""A run that is published in parts can be read while it goes on, and afterwards like any other."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from flexgroup.cli.main import main
from flexgroup.core.errors import UsageError
from flexgroup.trace import schema
from flexgroup.trace.reader import read_events, read_run, read_runs
from flexgroup.trace.schema import RUNNING
from flexgroup.trace.writer import STARTED
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario

from ..trace.recorded import SCENARIO, record

LONG = Scenario("skeen", 4, 3, "random:2", "lan", duration=0.02)
"""Long enough for several parts."""


class StoppedError(Exception):
    pass


def files(directory: Path) -> set[str]:
    return {path.relative_to(directory).as_posix() for path in directory.rglob("*.parquet")}


def event_files(directory: Path) -> set[str]:
    return {name for name in files(directory) if name.startswith("events/")}


def test_parts_are_read_whole(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run = record_scenario(LONG, whole).run
    record_scenario(LONG, parts, part_rows=100)
    assert len(event_files(parts)) > len(event_files(whole))
    for kind in (schema.MULTICAST, schema.SEND, schema.RECEIVE, schema.DELIVER):
        found, expected = read_events(parts, run, kind), read_events(whole, run, kind)
        assert found.to_pylist() == expected.to_pylist()
    assert read_run(parts, run) == read_run(whole, run)


def test_parts_appear_while_the_run_is_not_listed(tmp_path: Path) -> None:
    seen: list[set[str]] = []

    def look(share: float) -> None:
        seen.append(files(tmp_path))

    record_scenario(LONG, tmp_path, progress=look, part_rows=100)
    parts = f"events/event=deliver/{LONG.run}-part-000000.parquet"
    assert any(parts in names and f"runs/{LONG.run}.parquet" not in names for names in seen)


def test_what_is_being_run_is_told_when_it_starts(tmp_path: Path) -> None:
    record_scenario(SCENARIO, tmp_path, part_rows=100)
    path = tmp_path / STARTED / f"{SCENARIO.run}.parquet"
    [row] = pq.ParquetFile(path).read().to_pylist()
    assert (row["run"], row["stack"], row["outcome"]) == (SCENARIO.run, "skeen", RUNNING)


def test_a_run_that_is_given_up_leaves_no_parts(tmp_path: Path) -> None:
    def stop(share: float) -> None:
        if any("part-" in name for name in files(tmp_path)):
            raise StoppedError

    with pytest.raises(StoppedError):
        record_scenario(LONG, tmp_path, progress=stop, part_rows=100)
    assert event_files(tmp_path) == set()
    with pytest.raises(UsageError, match="holds no runs"):
        read_runs(tmp_path)


@pytest.mark.parametrize(("first", "second"), [(None, 100), (100, None), (100, 1000)])
def test_recording_again_leaves_one_recording(
    tmp_path: Path, first: int | None, second: int | None
) -> None:
    once = tmp_path / "once"
    record_scenario(LONG, once, part_rows=second)
    twice = tmp_path / "twice"
    record_scenario(LONG, twice, part_rows=first)
    record_scenario(LONG, twice, force=True, part_rows=second)
    assert event_files(twice) == event_files(once)


def test_other_runs_keep_their_parts(tmp_path: Path) -> None:
    record_scenario(LONG, tmp_path, part_rows=100)
    before = event_files(tmp_path)
    record(tmp_path)
    assert before < event_files(tmp_path)


@pytest.mark.parametrize("options", [["--part-rows", "0", "--out", "x"], ["--part-rows", "9"]])
def test_parts_need_a_size_and_a_place(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", "--protocol", "skeen", *options]) == 2
