"""Files that are missing show in the names of the others, and in how many events a run is told to
have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flexgroup.trace.reader import read_runs
from flexgroup.trace.run import Run
from flexgroup.trace.run_files import Part, file_problems, part_of
from flexgroup.trace.validate.report import validate
from flexgroup.worlds.simulator.scenario import record_scenario

from .recorded import SCENARIO, event_file, record, rows


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("mine", Part("mine", None, None)),
        ("mine-part-000012", Part("mine", None, 12)),
        ("mine@s1-000003", Part("mine", "s1", 3)),
        ("mine@s-part-000003", Part("mine", "s-part", 3)),
        ("mine@s1", Part("mine", "s1", None)),
        ("a@b-part-000001", Part("a@b", None, 1)),
        ("a@b@s1-000001", Part("a@b", "s1", 1)),
        ("part-00000-8f2a.snappy", None),
        ("minefield", None),
        ("mine-part-x", None),
    ],
)
def test_names_of_parts(name: str, part: Part | None) -> None:
    assert part_of(name, {"mine", "a@b"}) == part


def run(name: str, **events: int) -> Run:
    told = json.dumps(events) if events else None
    return Run(run=name, world="made up", stack="theirs", processes=3, events=told)


def reasons(described: Run, **files: dict[str, int | None]) -> list[str]:
    return [problem.reason.partition(";")[0] for problem in file_problems([described], files)]


PARTS: dict[str, int | None] = {"mine-part-0": 3, "mine-part-1": 4, "mine-part-2": 5}


def test_nothing_is_missing() -> None:
    assert reasons(run("mine"), deliver=PARTS) == []
    assert reasons(run("mine", deliver=12), deliver=PARTS) == []
    assert reasons(run("mine", deliver=12), deliver={**PARTS, "other-part-7": 1}) == []


def test_a_part_in_the_middle_is_missing() -> None:
    found = {name: rows for name, rows in PARTS.items() if name != "mine-part-1"}
    lacking = "lacks part 1 of its deliver events, and part 2 is there"
    assert reasons(run("mine"), deliver=found) == [lacking]
    of_server: dict[str, int | None] = {"mine@s1-000000": 1, "mine@s2-000001": 1}
    lacking = "lacks part 0 of the send events of s2, and part 1 is there"
    assert reasons(run("mine"), send=of_server) == [lacking]


def test_the_last_part_is_missing() -> None:
    found = {name: rows for name, rows in PARTS.items() if name != "mine-part-2"}
    assert reasons(run("mine", deliver=12), deliver=found) == [
        "has 7 deliver events, and `runs` tells of 12: files are missing"
    ]


def test_all_of_a_kind_is_missing() -> None:
    assert reasons(run("mine", deliver=12, send=9), deliver=PARTS) == [
        "has 0 send events, and `runs` tells of 9: files are missing"
    ]


def test_there_is_more_than_was_told() -> None:
    assert reasons(run("mine", deliver=11), deliver=PARTS) == [
        "has 12 deliver events, and `runs` tells of 11: two runs with the same name are mixed"
    ]


def test_what_cannot_be_known_is_not_told() -> None:
    """A file of several runs may hold the events, and so may one that cannot be read."""
    found = {name: rows for name, rows in PARTS.items() if name != "mine-part-2"}
    assert reasons(run("mine", deliver=12), deliver={**found, "all": 100}) == []
    assert reasons(run("mine", deliver=12), deliver={**found, "mine-part-2": None}) == []


def test_a_run_that_is_still_written_is_left_alone() -> None:
    found: dict[str, int | None] = {**PARTS, "other-part-3": 1}
    described = run("mine", deliver=12)
    assert list(file_problems([described], {"deliver": found}, {"other"})) == []


@pytest.mark.parametrize("part_rows", [None, 50])
def test_the_row_of_a_run_tells_how_many_events_it_has(
    tmp_path: Path, part_rows: int | None
) -> None:
    record_scenario(SCENARIO, tmp_path, part_rows=part_rows)
    (described,) = read_runs(tmp_path)
    found = {
        folder.name.removeprefix("event="): sum(len(rows(path)) for path in folder.iterdir())
        for folder in (tmp_path / "events").iterdir()
    }
    assert described.told_events == found


def test_the_validator_tells_of_what_is_missing(tmp_path: Path) -> None:
    name = record(tmp_path)
    event_file(tmp_path, "send", name).unlink()
    errors = [str(problem) for problem in validate(tmp_path).problems]
    assert any(
        line.startswith(f"error: events/event=send: run '{name}' has 0 send events, and `runs`")
        for line in errors
    )
