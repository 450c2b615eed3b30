"""The catalogue of properties: names, verdicts as JSON, and bad names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from flexgroup.core import promises
from flexgroup.core.errors import UsageError
from flexgroup.properties.catalogue import PROPERTIES, check

from .histories import told

EMPTY = told("")


def test_the_manual_has_a_section_on_each_property() -> None:
    manual = Path(__file__).resolve().parents[2] / "docs" / "properties.md"
    headings = {line for line in manual.read_text(encoding="utf-8").splitlines() if line[:1] == "#"}
    assert {f"## {name}" for name in PROPERTIES} <= headings


def test_checks_all_properties_in_the_order_of_the_table() -> None:
    assert [verdict.property for verdict in check(EMPTY)] == list(PROPERTIES)


def test_checks_what_is_named_in_the_order_of_the_names() -> None:
    verdicts = check(EMPTY, ["acyclic order", "integrity"])
    assert [verdict.property for verdict in verdicts] == ["acyclic order", "integrity"]


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"no property 'total order'.*integrity, validity, .*"):
        check(EMPTY, ["total order"])


def test_an_empty_run_violates_nothing() -> None:
    outcomes = {verdict.property: verdict.outcome.value for verdict in check(EMPTY)}
    for nothing_to_see in ("minimality", "virtual synchrony"):
        assert outcomes.pop(nothing_to_see) == "unknown"
    assert set(outcomes.values()) == {"holds"}


def test_verdicts_are_json_documents() -> None:
    history = told("2 deliver 5.7")
    [verdict, other] = check(history, ["integrity", "validity"])
    assert json.loads(json.dumps(verdict.to_json())) == {
        "property": "integrity",
        "outcome": "violated",
        "violations": 1,
        "witness": [{"process": 2, "step": 0, "event": "deliver", "message": "5.7"}],
        "explanation": verdict.explanation,
    }
    assert other.to_json()["witness"] is None


def test_importing_the_package_does_not_import_numpy() -> None:
    code = "import sys, flexgroup.properties; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_there_is_a_check_for_each_name_that_a_trace_may_promise() -> None:
    assert tuple(PROPERTIES) == promises.PROPERTIES
