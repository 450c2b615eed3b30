"""Watching without Spark: the folder is looked through, and the same is found as afterwards."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from flexgroup.cli.main import main
from flexgroup.core.errors import UsageError
from flexgroup.pipeline.in_memory.verdicts import verify_here
from flexgroup.pipeline.reading.local_files import look_here
from flexgroup.pipeline.watch.folder import FolderWatch
from flexgroup.pipeline.watch.violation_counts import WATCHED
from flexgroup.pipeline.watch.watched_run import BatchReport

ORDERS = ("fifo order", "acyclic order", "prefix order", "validity", "integrity")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """FIFO channels alone, and a stack with views and crashes, both in many parts."""
    traces = tmp_path_factory.mktemp("recorded")
    for options in (
        ("--protocol", "fifo", "--clients", "4", "--duration", "0.05"),
        ("--protocol", "causal", "--clients", "2", "--duration", "0.02"),
    ):
        arguments = [*options, "--processes", "5", "--part-rows", "60", "--out", str(traces)]
        assert main(["simulate", *arguments]) == 0
    return traces


def verified(traces: Path, properties: Sequence[str]) -> dict[tuple[str, str], tuple[str, int]]:
    files = look_here(str(traces))
    assert files is not None
    rows = verify_here(files, properties).to_pylist()
    return {(row["run"], row["property"]): (row["outcome"], row["violations"]) for row in rows}


class Told:
    """What watching told: the verdicts at the end, and the number of violations told last."""

    def __init__(self) -> None:
        self.final: dict[tuple[str, str], tuple[str, int]] = {}
        self.counted: dict[tuple[str, str], int] = {}
        self.refused: dict[str, str] = {}

    def __call__(self, run: str, notes: BatchReport) -> None:
        for row in notes.violations:
            self.counted[run, str(row["property"])] = int(str(row["violations"]))
        for row in notes.final:
            key = run, str(row["property"])
            self.final[key] = str(row["outcome"]), int(str(row["violations"]))
        if notes.refused:
            self.refused[run] = notes.refused


def test_the_same_is_found_however_files_appear(recorded: Path, tmp_path: Path) -> None:
    expected = verified(recorded, ORDERS)
    assert len({outcome for outcome, _ in expected.values()}) > 1
    files = [path for path in recorded.rglob("*.parquet") if path.parent.name != "runs"]
    chance = random.Random(5)
    for seed in range(3):
        chance.shuffle(files)
        growing, told = tmp_path / str(seed), Told()
        growing.mkdir()
        watch = FolderWatch(growing, told, ORDERS)
        for path in [*files, *(recorded / "runs").glob("*.parquet")]:
            place = growing / path.relative_to(recorded)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)
            if chance.random() < 0.2:
                watch.look()
        while watch.unfinished != 0:
            watch.look()
        assert told.final == expected
        violated = {key: count for key, (_, count) in expected.items() if count}
        assert told.counted == violated
        assert watch.found_any


def test_every_watched_property_is_judged(recorded: Path) -> None:
    told = Told()
    watch = FolderWatch(recorded, told, WATCHED)
    watch.look()
    assert watch.ending
    watch.look()
    assert {name for _, name in told.final} == set(WATCHED)


def test_the_command_prints_what_it_finds_and_needs_no_spark(recorded: Path) -> None:
    without = "import sys; sys.modules['pyspark'] = None; from flexgroup.cli.main import main; "
    words = ["watch", str(recorded), "--engine", "local", "--until-finished", "--json"]
    command = [
        sys.executable,
        "-c",
        f"{without}sys.exit(main({[*words, '--property', 'acyclic order']}))",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert any(row.get("property") == "acyclic order" and row["witness"] for row in rows)
    assert sum(row.get("over", False) for row in rows) == 2


def test_a_part_that_never_came_is_told(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(recorded, tmp_path / "gap")
    (missing, *_) = sorted((tmp_path / "gap/events/event=deliver").glob("causal*-part-000001*"))
    missing.unlink()
    assert main(["watch", str(tmp_path / "gap"), "--engine", "local", "--once"]) == 2
    assert "is missing" in capsys.readouterr().err


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="is not a directory"):
        FolderWatch(tmp_path / "nowhere", Told())
    for option in (["--out", "x"], ["--metrics", "localhost:1"], ["--master", "local"]):
        assert main(["watch", str(tmp_path), "--engine", "local", *option]) == 2
        assert "--engine local does without" in capsys.readouterr().err
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "broken.parquet").write_bytes(b"nothing of the kind")
    assert main(["watch", str(tmp_path), "--engine", "local", "--once"]) == 2
    assert "as Parquet" in capsys.readouterr().err
