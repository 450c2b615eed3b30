"""Recorded runs in the lab over plain HTTP: addresses, limits, bad traces, and what acts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from urllib.parse import urlencode

import pytest

from flexgroup.lab.app import Lab

from .conftest import RecordedRuns, Visited, listening


@pytest.fixture
def damaged(runs: RecordedRuns, tmp_path: Path) -> Iterator[Visited]:
    """A lab with a trace set of which one file is cut off, and one is missing."""
    copy = tmp_path / runs.traces
    copytree(runs.directory, copy)
    sends = copy / "events" / "event=send"
    cut = sends / f"{runs.calm}.parquet"
    cut.write_bytes(cut.read_bytes()[:2000])
    (sends / f"{runs.crashed}.parquet").unlink()
    with listening(Lab((), [copy])) as ready:
        yield ready


def loaded(lab: Visited, path: str) -> str:
    """Return a page when what it waits for has been read."""
    told = f"/told?{path.partition('?')[2]}"
    while not json.loads(lab.ask(told).text)["over"]:
        pass
    return lab.ask(path).text


def test_the_runs_are_listed(recorded: Visited, runs: RecordedRuns) -> None:
    page = recorded.ask("/traces").text
    for run in (runs.long, runs.calm, runs.crashed, runs.broken):
        assert run in page
    assert 'href="/traces"' in recorded.ask("/").text


def test_a_lab_without_traces_says_how_to_have_some(visited: Visited) -> None:
    assert "flexgroup lab traces" in visited.ask("/traces").text
    assert 'href="/traces"' not in visited.ask("/").text
    assert "this lab has no trace set" in visited.ask("/window?run=x").text


def test_a_damaged_or_incomplete_run_is_told_of_and_others_are_seen(
    damaged: Visited, runs: RecordedRuns
) -> None:
    for run, told in (
        (runs.calm, "the file is truncated, damaged or of another kind"),
        (runs.crashed, "has 0 send events, and `runs` tells of"),
    ):
        page = loaded(damaged, runs.window(run))
        assert told in page
        assert run in page
        assert damaged.ask(runs.window(run)).status == 400
    assert loaded(damaged, runs.window(runs.broken)).startswith("<!doctype html>")
    assert damaged.ask(runs.window(runs.broken)).status == 200


BAD = [
    ("run=", "which run?"),
    ("run=nobody", "holds no run &#x27;nobody&#x27;"),
    ("traces=elsewhere&run=x", "this lab has no trace set &#x27;elsewhere&#x27;"),
    ("traces=../etc&run=x", "this lab has no trace set"),
    ("run=x&from=soon", "&#x27;from&#x27; is &#x27;soon&#x27;"),
    ("run=x&from=7&to=7", "a window ends after it begins"),
    ("run=x&from=99999999999999999999&to=7", "must be a whole number"),
    ("run=x&processes=all", "write them as in 0-3,7"),
    ("run=x&processes=9-3", "write them as in 0-3,7"),
    ("run=x&processes=0-9999999", "write them as in 0-3,7"),
    ("run=x&message=hello", "&#x27;hello&#x27; is no message"),
    ("run=x&kind=party", "there are no events of kind &#x27;party&#x27;"),
    ("run=x&named=3", "&#x27;3&#x27; names no event"),
    ("run=x&named=" + "1.1+" * 300, "at most 200"),
    ("run=x&color=red", "a window has no &#x27;color&#x27;"),
    ("run=x&processes=" + "1," * 9_000, "at most 16,384 characters"),
    ("run=%ff", "not an address of the lab"),
]


@pytest.mark.parametrize(("query", "told"), BAD, ids=[told for _, told in BAD])
def test_a_bad_address_is_explained(
    recorded: Visited, runs: RecordedRuns, query: str, told: str
) -> None:
    traces = "" if "traces=" in query else f"traces={runs.traces}&"
    answer = recorded.ask(f"/window?{traces}{query}")
    assert answer.status == 400
    assert told in answer.text


def test_what_an_address_says_is_never_markup(recorded: Visited, runs: RecordedRuns) -> None:
    answer = recorded.ask(runs.window("<script>alert(1)</script>"))
    assert "<script>alert" not in answer.text


def test_windows_beyond_the_run_and_processes_that_are_not_there_are_empty(
    recorded: Visited, runs: RecordedRuns
) -> None:
    for more in ({"from": "-900", "to": "-800"}, {"processes": "777"}, {"message": "4711.0"},
                 {"destinations": "0,777"}, {"named": "777.0"}):  # fmt: skip
        page = loaded(recorded, runs.window(runs.calm, **more))
        assert "Only some events" in page


def test_other_sites_get_nothing_and_only_the_lab_has_a_run_checked(
    recorded: Visited, runs: RecordedRuns
) -> None:
    path = runs.window(runs.calm)
    assert recorded.ask(path, Origin="http://evil.example").status == 403
    assert recorded.ask(path, Host="evil.example").status in (400, 403)
    fields = urlencode({"token": "x", "window": path.partition("?")[2]})
    assert recorded.ask("/judge", "POST", fields, Origin=recorded.base).status == 403
    assert recorded.ask("/judge").status == 405
    answer = recorded.post("/judge", window=path.partition("?")[2])
    assert answer.status == 303
    assert answer.headers["location"] == f"{path}#verdicts"


def test_a_small_run_of_the_explorer_is_stepped_through_and_a_long_one_is_not(
    recorded: Visited, runs: RecordedRuns
) -> None:
    refused = recorded.ask(runs.window(runs.long).replace("/window", "/step"))
    assert refused.status == 400
    assert "up to 5,000 can be stepped through" in refused.text


def test_a_comparison_wants_two_runs(recorded: Visited, runs: RecordedRuns) -> None:
    answer = recorded.ask(runs.window(runs.calm).replace("/window", "/compare"))
    assert answer.status == 400
    assert "which other run?" in answer.text
    path = f"{runs.window(runs.calm)}&with={runs.traces}/nobody".replace("/window", "/compare")
    assert "holds no run &#x27;nobody&#x27;" in recorded.ask(path).text
