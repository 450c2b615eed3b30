"""Whatever was done to a run is found, by every route, and nothing else is told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexgroup.cli.main import main
from flexgroup.pipeline.verify import large_runs
from flexgroup.properties.catalogue import PROPERTIES

from .spoilt_traces import SPOILT, Spoilt, record, spoilt_copy
from .tampered_runs import TAMPERINGS, lost, swapped
from .tampering_trial import Expected, here, mistakes, routes, trial

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW = 1_000
"""Deliveries of each run."""


def test_every_property_is_violated_and_kept_by_some_run() -> None:
    """Otherwise the trial would say little."""
    everything = [Expected.of(tampering(FEW)) for tampering in TAMPERINGS]
    for name in PROPERTIES:
        outcomes = {expected.opinions[name].outcome for expected in everything}
        assert {"holds", "violated"} <= outcomes, name


def test_what_is_done_to_a_run_is_found_here() -> None:
    for run, _, wrong in trial(TAMPERINGS, FEW, {"here": here}):
        assert wrong == [], run


@pytest.mark.slow
def test_what_is_done_to_a_run_is_found_on_spark(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_runs, "MOST_TASKS", 8)
    ways = routes(FEW, lambda: spark)
    assert ways.keys() == {"here", "from files", "whole", "in slices"}
    for run, _, wrong in trial(TAMPERINGS, FEW, ways):
        assert wrong == [], run


def test_the_trial_notices_a_verdict_that_is_wrong() -> None:
    expected = Expected.of(swapped(FEW))
    verdict: dict[str, object] = {"run": "swapped", "property": "acyclic order"}
    verdict |= {"outcome": "holds", "violations": 0, "witness": None, "explanation": "checked"}
    assert list(expected.wrong(verdict)) == [
        "acyclic order: ('holds', 0), expected ('violated', 1)"
    ]
    steps = [{"process": 3, "step": 16, "event": "deliver", "message": "9.1"}] * 4
    told = {**verdict, "outcome": "violated", "violations": 1, "witness": json.dumps(steps)}
    assert "steps that the run does not have" in next(expected.wrong(told))
    assert len(list(mistakes({"swapped": expected}, []))) == len(PROPERTIES)
    assert next(Expected(lost(FEW), expected.second, {}).misjudged()).startswith("tampered with")


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("valid") / "traces"
    record(directory, FEW)
    return directory


COMMANDS = (
    ("validate",),
    ("verify", "--check", "all", "--engine", "local"),
    ("measure", "--engine", "local"),
)


def test_what_is_spoilt_was_valid_before(valid: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command, *options in COMMANDS:
        assert main([command, str(valid), *options]) == 0, capsys.readouterr()


@pytest.mark.parametrize("spoilt", SPOILT, ids=lambda spoilt: spoilt.name)
def test_what_is_no_trace_is_refused_by_all_in_the_same_words(
    valid: Path, tmp_path: Path, spoilt: Spoilt, capsys: pytest.CaptureFixture[str]
) -> None:
    traces = spoilt_copy(valid, spoilt, tmp_path)
    for command, *options in COMMANDS:
        assert main([command, str(traces), *options]) == 2, command
        told = capsys.readouterr()
        assert re.search(spoilt.words, told.out + told.err), command
