"""`flexgroup schedules`, of servers that are not as they should be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flexgroup.cli.main import main
from flexgroup.trace.reader import read_runs

from ..membership.broken_memberships import puts_what_nobody_delivered_last
from ..virtual.forcing import freeze_at_every_change

DRAWN = ["--stack", "reliable atomic", "--load", "dense", "--workers", "1", "--whole"]


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers put what nobody delivered last, whatever came after it elsewhere."""
    puts_what_nobody_delivered_last(monkeypatch)
    freeze_at_every_change(monkeypatch)


def test_a_bad_schedule_is_printed_and_written_and_can_be_replayed(
    broken: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schedules", "--seeds", "8", *DRAWN, "--out", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert "reliable atomic, dense, seed " in told
    assert "order is violated" in told
    folder = sorted(tmp_path.iterdir())[0]
    assert read_runs(folder)
    assert main(["schedules", "--replay", str(folder / "schedule.txt")]) == 1
    assert "order is violated" in capsys.readouterr().out


def test_json_has_the_problems_and_the_schedules(
    broken: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schedules", "--seeds", "8", *DRAWN, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["schedules"] == 8
    first = document["bad"][0]
    assert first["stack"] == "reliable atomic"
    assert {"kind", "text"} == first["problems"][0].keys()
    assert first["schedule"].startswith(f"seed {first['seed']}\n")
