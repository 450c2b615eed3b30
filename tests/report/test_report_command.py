"""The command `flexgroup report`: where the page goes, what is replaced, what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexgroup.cli.main import main
from flexgroup.core.errors import UsageError
from flexgroup.report import write_report
from flexgroup.report.contents import has_tables
from flexgroup.worlds.simulator.scenario import record_scenario

from ..diagram.elements import parsed
from .directories import CIRCLE, GOOD, STUCK, experiment, record, write_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment without violations; tests work on copies."""
    return experiment(tmp_path_factory.mktemp("good"), GOOD[:2])


@pytest.fixture
def directory(good: Path, tmp_path: Path) -> Path:
    return shutil.copytree(good, tmp_path / "experiment")


def failure(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["report", *arguments]) == 2
    message = capsys.readouterr().err
    assert message.startswith("flexgroup: error: ")
    assert len(message.splitlines()) == 1
    return message


def test_it_says_where_the_page_is(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(directory)]) == 0
    assert f"report: {directory / 'report.html'}" in capsys.readouterr().out
    assert (directory / "report.html").exists()


def test_the_exit_code_tells_of_violations(
    sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["report", str(sample.parent), "--out", str(page), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "report": str(page),
        "runs": 21,
        "verdicts": {"holds": 80, "violated": 4, "unknown": 0},
    }


def test_a_report_is_replaced_and_leaves_nothing_else_behind(directory: Path) -> None:
    before = {path.name for path in directory.iterdir()}
    write_report(directory)
    write_report(directory)
    assert {path.name for path in directory.iterdir()} == before | {"report.html"}


def test_another_file_is_not_replaced_unless_forced(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = tmp_path / "notes.html"
    notes.write_text("mine", encoding="utf-8")
    assert "--force" in failure(capsys, str(directory), "--out", str(notes))
    assert notes.read_text(encoding="utf-8") == "mine"
    assert main(["report", str(directory), "--out", str(notes), "--force"]) == 0
    assert "<!doctype html>" in notes.read_text(encoding="utf-8")


def test_a_directory_without_anything_to_report_on_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "flexgroup simulate" in failure(capsys, str(tmp_path))
    assert "is not a directory" in failure(capsys, str(tmp_path / "missing"))


def test_a_damaged_table_is_named(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = directory / "tables" / "measures"
    (table / "measures.parquet").write_bytes(b"not Parquet")
    assert str(table) in failure(capsys, str(directory))


@pytest.mark.parametrize(
    ("name", "missing"), [("verdicts", "property"), ("points", "stack"), ("claims", "claim")]
)
def test_a_table_of_another_kind_is_named(
    directory: Path, capsys: pytest.CaptureFixture[str], name: str, missing: str
) -> None:
    shutil.rmtree(directory / "tables" / name)
    shutil.copytree(directory / "traces" / "events" / "event=send", directory / "tables" / name)
    assert f"has no column '{missing}'" in failure(capsys, str(directory))


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ("{", "as JSON"),
        ("[]", "one JSON object"),
        ('{"figures": [{"id": "1"}]}', "without 'title'"),
        ('{"figures": [{"id": "1", "title": "", "kind": "pie", "series": [], "metrics": ["a"]}]}',
         "'pie'"),
        ('{"figures": 3}', "figures"),
    ],
)  # fmt: skip
def test_a_description_that_describes_nothing_is_refused(
    directory: Path, capsys: pytest.CaptureFixture[str], about: str, words: str
) -> None:
    (directory / "experiment.json").write_text(about, encoding="utf-8")
    message = failure(capsys, str(directory))
    assert "experiment.json" in message
    assert words in message


def test_write_report_raises_what_the_command_would_say(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither tables"):
        write_report(tmp_path)


def test_tables_of_a_trace_set_are_not_used_once_it_holds_other_runs(tmp_path: Path) -> None:
    write_tables(tmp_path, record(tmp_path, GOOD[:2]))
    (tmp_path / "experiment.json").unlink()
    assert has_tables(tmp_path)
    record_scenario(GOOD[2], tmp_path)
    assert not has_tables(tmp_path)


def test_a_trace_set_is_verified_and_measured_first(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the traces of DCC as published to the circle in the diagram."""
    from flexgroup.pipeline.spark import session

    monkeypatch.setattr(session, "start", lambda *_: session.Started(spark, 0.0))
    for scenario in (CIRCLE, STUCK):
        record_scenario(scenario, tmp_path)
    page = parsed(write_report(tmp_path).read_text(encoding="utf-8"))
    told = {pre.text for pre in page.find("pre", "explanation")}
    assert any("d < a, because process 0 delivered d (step 76)" in text for text in told)
    assert any("did not deliver a" in text for text in told)
    assert all(article.find("svg", "space-time") for article in page.find("article"))
    assert page.find("h1")[0].text == tmp_path.name
