"""Where two recorded runs part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flexgroup.trace.differences import Difference, differences
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario

from .recorded import event_file, record, rows, tamper

CALM = Scenario("vcube-atomic", 4, 2, "random:2", duration=0.004)


def test_a_run_is_the_same_as_itself_whenever_things_happened(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    name = record(one, CALM)
    assert record(two, CALM) == name

    def later(found: list[dict[str, int]]) -> None:
        for row in found:
            row["time"] += 17

    for kind in ("deliver", "send"):
        tamper(event_file(two, kind, name), later)
    assert differences((one, name), (two, name)) == []


def test_a_crash_is_where_a_process_parts_from_the_run_without(tmp_path: Path) -> None:
    calm = record(tmp_path, CALM)
    crash = replace(CALM, faults=Faults(("3@2ms",), detection="1ms"))
    crashed = record(tmp_path, crash)
    found = {each.process: each for each in differences((tmp_path, calm), (tmp_path, crashed))}
    own = found[3]
    assert own.alike == own.ours == own.theirs
    theirs = {place(row): row for row in rows(event_file(tmp_path, "crash", crashed))}
    assert place({"process": 3, "step": own.theirs}) in theirs
    back = {each.process: each for each in differences((tmp_path, crashed), (tmp_path, calm))}
    assert back[3] == Difference(3, own.theirs, own.ours, own.alike)


CHANGES: dict[tuple[str, str], Callable[[dict[str, Any]], object]] = {
    ("deliver", "seq"): lambda row: row["seq"] + 1000,
    ("receive", "peer"): lambda row: 1 - min(row["peer"], 1),
    ("send", "packet"): lambda row: "Other",
    ("multicast", "destinations"): lambda row: [0, 1, 2, 3],
}


@pytest.mark.parametrize(("kind", "column"), CHANGES)
def test_whatever_differs_is_seen(tmp_path: Path, kind: str, column: str) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    name = record(one, CALM)
    record(two, CALM)
    changed: list[tuple[int, int]] = []

    def change(found: list[dict[str, Any]]) -> None:
        row = found[len(found) // 2]
        row[column] = CHANGES[kind, column](row)
        changed.append(place(row))

    tamper(event_file(two, kind, name), change)
    ((process, step),) = changed
    assert differences((one, name), (two, name)) == [Difference(process, step, step, step)]


def test_a_history_that_ends_is_told_of(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    name = record(one, CALM)
    record(two, CALM)
    last: dict[int, int] = {}
    for kind in ("multicast", "send", "receive", "deliver"):
        for row in rows(event_file(one, kind, name)):
            last[row["process"]] = max(last.get(row["process"], 0), row["step"])
    for kind in ("multicast", "send", "receive", "deliver"):
        tamper(event_file(two, kind, name), lambda found: remove(found, 0, last[0]))
    assert differences((one, name), (two, name)) == [Difference(0, last[0], None, last[0])]


def remove(found: list[dict[str, int]], process: int, step: int) -> None:
    found[:] = [row for row in found if place(row) != (process, step)]


def place(row: dict[str, int]) -> tuple[int, int]:
    return row["process"], row["step"]
