"""One page of claims: what experiments judged, kept from time to time."""

from __future__ import annotations

from pathlib import Path

import pytest

from flexgroup.cli.main import BAD_INPUT, main
from flexgroup.core.errors import UsageError
from flexgroup.experiments.results import Judged, page, read_record, renewed, write_record

OLD = Judged("dcc-7.1", "small", "a", "7.1", "D&F collapses", "yes", "25, 5, 1")
NEW = Judged("dcc-7.1", "paper", "a", "7.1", "D&F collapses", "no", "peaks | busy")
OTHER = Judged("demo", "small", "x", "ours", "it runs", "yes", "it did")


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_record(tmp_path / "results.csv", [OLD, OTHER])
    assert read_record(tmp_path / "results.csv") == [OLD, OTHER]
    assert read_record(tmp_path / "none.csv") == []


def test_news_of_an_experiment_replace_its_rows_and_no_others() -> None:
    assert renewed([OLD, OTHER], [NEW]) == [OTHER, NEW]
    assert renewed([OTHER], []) == [OTHER]


def test_an_experiment_that_is_gone_is_dropped() -> None:
    gone = Judged("no-such", "small", "x", "1", "something", "yes", "seen")
    assert renewed([gone, OTHER], []) == [OTHER]


def test_the_page_counts_verdicts_and_links_to_runs() -> None:
    shown = page([OTHER, NEW], {"dcc-7.1": "dcc-results.md"})
    source = "Louzada 2024 (dissertation), chapter 7"
    assert f"| [dcc-7.1](dcc-results.md) | {source} | paper | 1 | 0 | a |" in shown
    assert (
        "| a | 7.1 | D&F collapses | **no** | peaks \\| busy | [dcc-7.1](dcc-results.md) |" in shown
    )
    assert "| x | ours | it runs | yes | it did | demo |" in shown


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text("one,two\n1,2\n")
    with pytest.raises(UsageError, match="its columns must be experiment, scale, claim"):
        read_record(tmp_path / "results.csv")


def test_a_directory_without_claims_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, out = str(tmp_path / "results.csv"), str(tmp_path / "results.md")
    assert main(["results", str(tmp_path), "--record", record, "--out", out]) == BAD_INPUT
    assert "holds no experiment that has judged its claims" in capsys.readouterr().err
