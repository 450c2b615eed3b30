"""A directory is taken up where the same experiment left it; nothing else is touched unforced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.experiments.catalogue import EXPERIMENTS
from flexgroup.experiments.directory import reserved_directory
from flexgroup.experiments.experiment import PAPER, SMALL

DEMO = EXPERIMENTS["demo"]


def claim(path: Path, experiment: str = "demo", scale: str = SMALL, force: bool = False) -> None:
    with reserved_directory(EXPERIMENTS[experiment], scale, path, force):
        pass


def test_the_description_says_what_was_run_and_what_the_paper_says(tmp_path: Path) -> None:
    claim(tmp_path / "out")
    told = json.loads((tmp_path / "out" / "experiment.json").read_text())
    assert (told["name"], told["scale"], told["runs"]) == ("demo", "small", 16)
    assert told["software"].startswith("flexgroup ")
    (figure,) = told["figures"]
    assert figure["id"] == "7.1c"
    assert figure["paper"]
    assert figure["series"][0]["stack"] == "skeen"


def test_the_same_experiment_goes_on_in_its_directory(tmp_path: Path) -> None:
    claim(tmp_path)
    run = DEMO.scenarios(SMALL)[0].run
    kept = tmp_path / "traces" / "runs" / f"{run}.parquet"
    kept.parent.mkdir(parents=True)
    kept.write_text("a finished run")
    claim(tmp_path)
    assert kept.exists()


def test_what_was_measured_elsewhere_may_be_there_before(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.csv").write_text("stack,gap\n")
    claim(tmp_path)
    claim(tmp_path, force=True)
    assert (tmp_path / "elsewhere.csv").exists()


@pytest.mark.parametrize(
    ("name", "scale", "told"),
    [
        ("demo", PAPER, "holds experiment demo at scale small"),
        ("dcc", SMALL, "not dcc at small"),
    ],
)
def test_another_experiment_is_refused(tmp_path: Path, name: str, scale: str, told: str) -> None:
    claim(tmp_path)
    with pytest.raises(UsageError, match=told):
        claim(tmp_path, name, scale)


def test_a_run_of_something_else_among_the_traces_is_refused(tmp_path: Path) -> None:
    claim(tmp_path)
    (tmp_path / "traces" / "runs").mkdir(parents=True)
    (tmp_path / "traces" / "runs" / "stranger.parquet").write_text("")
    with pytest.raises(UsageError, match="holds run 'stranger', which is not of this experiment"):
        claim(tmp_path)


def test_a_directory_with_other_files_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="is not empty and holds no experiment; choose another"):
        claim(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_force_removes_what_experiments_write_and_nothing_else(tmp_path: Path) -> None:
    claim(tmp_path)
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / "tables" / "points").mkdir(parents=True)
    claim(tmp_path, "dcc", force=True)
    assert (tmp_path / "thesis.tex").exists()
    assert not (tmp_path / "tables").exists()
    assert json.loads((tmp_path / "experiment.json").read_text())["name"] == "dcc"


def test_a_description_that_is_damaged_is_refused(tmp_path: Path) -> None:
    (tmp_path / "experiment.json").write_text('{"name": "de')
    with pytest.raises(UsageError, match="does not describe an experiment"):
        claim(tmp_path)


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a regular file")
    with pytest.raises(UsageError, match="choose a directory that you may write to"):
        claim(tmp_path / "file" / "out")


def test_two_at_a_time_are_refused(tmp_path: Path) -> None:
    with (
        reserved_directory(DEMO, SMALL, tmp_path, False),
        pytest.raises(UsageError, match="in use, by another command"),
    ):
        claim(tmp_path)
    claim(tmp_path)
