"""`ramcast` on trial with crashes and wrong suspicions: what its page says was explored is so."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.random_walks import RandomWalks
from flexgroup.worlds.explorer.scope import Bounds, Scope

from .variant_parts import Case
from .variants import named
from .variants_ramcast import BOTH, DEEP_CASES, RAMCAST, grouped

PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocols" / "ramcast.md"

MOST_STATES = 50_000


def rows() -> list[list[str]]:
    """Groups, multicasts, who crashes, who suspects whom, and states of each scope."""
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| [\d,]+ \| \d+:\{[^|]*\| [^|]+ \| [^|]+ \| [\d,]+ \|$", line)
    ]


def of_size(small: bool) -> list[list[str]]:
    return [row for row in rows() if (int(row[4].replace(",", "")) < MOST_STATES) is small]


def scope_of(row: list[str]) -> Scope:
    groups, multicasts, crashes, suspicions = row
    return grouped(
        tuple(map(int, groups.split(","))),
        *[
            (int(origin), tuple(map(int, members.split(","))))
            for origin, members in re.findall(r"(\d+):\{([\d,]+)\}", multicasts)
        ],
        crash=tuple(map(int, re.findall(r"\d+", crashes))),
        suspect=tuple((int(p), int(q)) for p, q in re.findall(r"(\d+):(\d+)", suspicions)),
    )


def check(row: list[str]) -> None:
    states = row[4]
    outcome = explore(RAMCAST, scope_of(row[:4]))
    assert outcome.exhausted
    assert not outcome.violations
    assert outcome.complete == outcome.terminals > 0
    assert f"{outcome.states:,}" == states


def test_the_page_has_scopes_with_crashes_and_with_suspicions_and_with_both() -> None:
    assert {(row[2] != "-", row[3] != "-") for row in rows()} == {
        (False, False), (True, False), (False, True), (True, True)
    }  # fmt: skip


@pytest.mark.parametrize("row", of_size(small=True), ids=" ".join)
def test_the_row_is_true(row: list[str]) -> None:
    check(row)


@pytest.mark.slow
@pytest.mark.parametrize("row", of_size(small=False), ids=" ".join)
def test_the_long_row_is_true(row: list[str]) -> None:
    check(row)


TWO_IN_TWO_GROUPS = grouped((3, 1), (0, BOTH), (3, BOTH), crash=(0,), suspect=((1, 0),))


def test_two_messages_and_two_groups_meet_in_walks_too_long_to_be_exhausted() -> None:
    outcome = RandomWalks(RAMCAST, TWO_IN_TWO_GROUPS, 300, seed=1, depth=3).take()
    assert not outcome.violations
    assert outcome.complete > 0


@pytest.mark.slow
@pytest.mark.parametrize("case", DEEP_CASES, ids=named)
def test_a_deep_variant_is_caught(case: Case) -> None:
    outcome = explore(case.variant(), case.scope)
    assert case.broken in outcome.broken


# Restarts.


def rows_with_restarts() -> list[list[str]]:
    """Groups, multicasts, who crashes and starts again, and states of each scope."""
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| [\d,]+ \| \d+:\{[^|]*\| \d \| [\d,]+ \|$", line)
    ]


def test_the_page_has_scopes_with_restarts_of_leaders_and_of_followers() -> None:
    assert {row[2] for row in rows_with_restarts()} == {"0", "2"}


@pytest.mark.parametrize("row", rows_with_restarts(), ids=" ".join)
def test_the_row_with_a_restart_is_true(row: list[str]) -> None:
    scope = scope_of([*row[:3], "-"])
    outcome = explore(RAMCAST, replace(scope, bounds=Bounds(crashes=1, restarts=1)))
    assert outcome.exhausted
    assert not outcome.violations
    assert outcome.complete == outcome.terminals > 1
    assert f"{outcome.states:,}" == row[3]
