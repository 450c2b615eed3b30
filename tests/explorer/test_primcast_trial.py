"""`primcast` on trial with crashes and wrong suspicions: what its page says was explored is so."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.random_walks import RandomWalks
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope

PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocols" / "primcast.md"

MOST_STATES = 10_000

PRIMCAST = parse_stack("leader primcast")

NOBODY = "nobody"
ANYBODY = "anybody"


def rows() -> list[list[str]]:
    """Groups, messages, who crashes, who suspects whom wrongly, and states of each scope."""
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| [\d,]+ \| \d:\{[\d,:{} ]+\} \| [^|]+ \| [^|]+ \| [\d,]+ \|", line)
    ]


def of_size(small: bool) -> list[list[str]]:
    return [row for row in rows() if (int(row[4].replace(",", "")) < MOST_STATES) is small]


def scope_of(groups: str, messages: str, crash: str, suspicion: str) -> Scope:
    sizes = [int(size) for size in groups.split(",")]
    casts = [
        PlannedCast(int(origin), tuple(map(int, members.split(","))))
        for origin, members in re.findall(r"(\d):\{([\d,]+)\}", messages)
    ]
    named = re.findall(r"(\d) of (\d)", suspicion)
    return Scope(
        sum(sizes),
        tuple(casts),
        bounds=Bounds(crashes=crash != NOBODY, suspicions=suspicion != NOBODY),
        crashing=() if crash in (NOBODY, ANYBODY) else (int(crash),),
        suspecting=tuple((int(p), int(q)) for p, q in named),
        replicas=replicas_of_sizes(sizes),
    )


def check(row: list[str]) -> None:
    outcome = explore(PRIMCAST, scope_of(*row[:4]))
    assert outcome.exhausted
    assert not outcome.violations
    assert outcome.complete == outcome.terminals > 1
    assert f"{outcome.states:,}" == row[4]


def test_the_page_has_scopes_with_crashes_and_with_suspicions_and_with_both() -> None:
    faults = {(row[2] != NOBODY, row[3] != NOBODY) for row in rows()}
    assert faults == {(False, False), (True, False), (False, True), (True, True)}
    assert {row[0] for row in rows()} >= {"3", "3,1"}


@pytest.mark.parametrize("row", of_size(small=True), ids=" ".join)
def test_the_row_is_true(row: list[str]) -> None:
    check(row)


@pytest.mark.slow
@pytest.mark.parametrize("row", of_size(small=False), ids=" ".join)
def test_the_long_row_is_true(row: list[str]) -> None:
    check(row)


@pytest.mark.parametrize("messages", ["0:{0,1,2,3} 3:{0,1,2,3}", "0:{0,1,2} 3:{0,1,2,3}"])
def test_two_groups_two_messages_and_both_faults_in_walks(messages: str) -> None:
    """What is too large to be exhausted: three epochs meet, and two groups."""
    scope = scope_of("3,1", messages, "1", "1 of 0")
    outcome = RandomWalks(PRIMCAST, scope, 60, seed=1, depth=3).take()
    assert not outcome.violations
    assert outcome.complete > 0


# Restarts.


def rows_with_restarts() -> list[list[str]]:
    """Groups, messages, who crashes and starts again, and states of each scope."""
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| [\d,]+ \| \d:\{[\d,]+\} \| \d \| [\d,]+ \|", line)
    ]


def test_the_page_has_scopes_with_restarts_of_primaries_and_of_followers() -> None:
    assert {row[2] for row in rows_with_restarts()} == {"0", "2"}


@pytest.mark.parametrize("row", rows_with_restarts(), ids=" ".join)
def test_the_row_with_a_restart_is_true(row: list[str]) -> None:
    scope = scope_of(row[0], row[1], row[2], NOBODY)
    outcome = explore(PRIMCAST, replace(scope, bounds=Bounds(crashes=1, restarts=1)))
    assert outcome.exhausted
    assert not outcome.violations
    assert outcome.complete == outcome.terminals > 1
    assert f"{outcome.states:,}" == row[3]
