"""`flexgroup schedules`: what it prints, writes and returns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flexgroup.cli.main import main
from flexgroup.trace.reader import read_runs

QUIET = """
seed 1
stack SKEEN
servers 2
client ann 0 A
client bob 1 A
0.1 send ann A
"""


def test_schedules_without_a_problem_are_counted() -> None:
    """In a process of its own, which has no threads when it forks."""
    command = [sys.executable, "-m", "flexgroup.cli.main", "schedules", "--seeds", "1"]
    command += ["--stack", "skeen", "--workers", "2"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("3 schedules, ")


def test_a_schedule_in_a_file_is_executed_and_its_trace_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "quiet.txt"
    file.write_text(QUIET)
    out = tmp_path / "trace"
    assert main(["schedules", "--replay", str(file), "--out", str(out)]) == 0
    assert capsys.readouterr().out == "0.1 s of 2 servers: no problems\n"
    assert {run.stack for run in read_runs(out)} == {"skeen"}


def test_the_same_schedule_has_the_same_digest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "quiet.txt"
    file.write_text(QUIET)
    told = []
    for _ in range(2):
        assert main(["schedules", "--replay", str(file), "--json"]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (None, "No such file"),
        ("stack SKEEN\nsoon kill 1\n", "line 2 of the schedule"),
        ("stack SKEEN\nservers 2\n0.1 kill 2\n", "servers are numbered from 0 to 1"),
        ("stack SKEEN\nservers 2\nclient ann 5 A\n", "servers are numbered from 0 to 1"),
        ("stack SKEEN\n0.1 send ann A\n", "clients are named before"),
        ("stack SKEEN\n0.1 disk 0 burns\n", "a disk sticks or fails"),
        ("stack SKEENY\n", "unknown protocol 'skeeny'"),
    ],
)
def test_a_file_that_is_no_schedule_is_refused(
    text: str | None, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.txt"
    if text is not None:
        file.write_text(text)
    assert main(["schedules", "--replay", str(file)]) == 2
    assert what in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--stack", "atomic best-effort"], "does not keep what 'atomic' below it gives"),
        (["--stack", "skeen", "--load", "kept"], "no group of the load kept can have"),
    ],
)
def test_stacks_that_servers_refuse_are_refused(
    options: list[str], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schedules", "--seeds", "1", *options]) == 2
    assert what in capsys.readouterr().err
