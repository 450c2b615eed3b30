"""Spark's verdicts are those of the plain-Python properties, word for word, on any trace.

All ways to check a run are tried: in one task that reads its files, in one task to which Spark
brings its events, and cut into pieces so small that every run has many of them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexgroup.pipeline.reading.trace_set import TraceSet, open_trace_set
from flexgroup.pipeline.verify import SizeLimits, large_runs, verify
from flexgroup.properties.catalogue import PROPERTIES, check
from flexgroup.trace.history import History

from ..properties.faulty_stories import FAULTY, STORIES
from ..properties.histories import told
from .made_up_runs import nonsense, write_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = 36

WAYS = {
    "from files": SizeLimits(),
    "whole": SizeLimits(events_from_files=0),
    "in pieces": SizeLimits(events_from_files=0, whole_deliveries=0, cell_deliveries=2),
}


@cache
def histories() -> list[History]:
    """Nonsense, some of it with a faulty process, some with names for nodes and messages; and for
    each property a run that only a faulty process keeps from having it."""
    stories = {name: replace(told(story), faulty=FAULTY) for name, story in STORIES.items()}
    return [
        *(nonsense(seed) for seed in range(RUNS)),
        *(replace(history, run=f"faulty-{name}") for name, history in stories.items()),
    ]


@cache
def plain_verdicts() -> dict[tuple[str, str], dict[str, object]]:
    return {
        (history.run, verdict.property): verdict.to_json()
        for history in histories()
        for verdict in check(history)
    }


@pytest.fixture(scope="module")
def traces(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TraceSet:
    directory: Path = write_all(tmp_path_factory.mktemp("nonsense"), histories())
    return open_trace_set(spark, str(directory))


def test_the_runs_break_and_keep_every_property() -> None:
    """Otherwise the comparison would say little."""
    for name in PROPERTIES:
        outcomes = [plain_verdicts()[history.run, name]["outcome"] for history in histories()]
        assert min(outcomes.count("holds"), outcomes.count("violated")) >= 3, name


def test_some_runs_are_told_of_by_names() -> None:
    """Every property speaks of nodes and messages by these where it is broken."""
    told = {
        name: json.dumps(verdict)
        for (run, name), verdict in plain_verdicts().items()
        if verdict["outcome"] == "violated" and "node " in json.dumps(verdict)
    }
    assert told.keys() == PROPERTIES.keys()
    for verdict in told.values():
        assert "process " not in json.loads(verdict)["explanation"]
        assert '"node": "node ' in verdict


@pytest.mark.parametrize("way", WAYS)
def test_verdicts_are_those_of_the_plain_properties(
    traces: TraceSet, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # There are hundreds of pieces, and a task for each would take longer than all the rest.
    monkeypatch.setattr(large_runs, "MOST_TASKS", 8)
    found = {
        (row.run, row.property): {
            "property": row.property,
            "outcome": row.outcome,
            "violations": row.violations,
            "witness": None if row.witness is None else json.loads(row.witness),
            "explanation": row.explanation,
        }
        for row in verify(traces, list(PROPERTIES), WAYS[way]).collect()
    }
    expected = plain_verdicts()
    assert found.keys() == expected.keys()
    wrong = [key for key in expected if found[key] != expected[key]]
    assert not wrong, "\n\n".join(f"{key}\n{found[key]}\n{expected[key]}" for key in wrong[:5])
