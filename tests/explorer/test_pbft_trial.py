"""`pbft` on trial among liars: what its page says was explored is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.liars.named import liars_of
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope
from flexgroup.worlds.explorer.search_setup import SearchOptions

PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocols" / "pbft.md"

MOST_STATES = 10_000

SAFETY = ("integrity", "prefix order", "acyclic order")


def rows() -> list[list[str]]:
    """Origins, liars, option, timers and states of each scope."""
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| [\d, ]+ \| [\w: ]+ \| (none|short) \| \d \| [\d,]+ \|", line)
    ]


def of_size(small: bool) -> list[list[str]]:
    return [row for row in rows() if (int(row[4].replace(",", "")) < MOST_STATES) is small]


def check(row: list[str]) -> None:
    origins, liars, option, timers, states = row
    scope = Scope(
        4,
        tuple(PlannedCast(int(origin), (0, 1, 2, 3)) for origin in origins.split(",")),
        bounds=Bounds(timers=int(timers)),
        replicas=replicas_of_sizes([4]),
        liars=liars_of(() if liars == "nobody" else liars.split()),
    )
    plan = parse_stack("pbft" if option == "none" else f"pbft/{option}")
    only_safe = scope.bounds.timers > 0 or len(scope.liars) > 1
    options = SearchOptions(properties=SAFETY if only_safe else None)
    outcome = explore(plan, scope, options)
    assert outcome.exhausted
    assert not outcome.violations
    assert outcome.terminals
    assert only_safe or outcome.complete == outcome.terminals
    assert f"{outcome.states:,}" == states


def test_the_page_has_scopes_with_liars_of_both_kinds_and_with_timers() -> None:
    liars = {kind for row in rows() for kind in re.findall(r":(\w+)", row[1])}
    assert liars == {"silent", "twin"}
    assert {row[3] for row in rows()} >= {"0", "1", "2"}


@pytest.mark.parametrize("row", of_size(small=True), ids=" ".join)
def test_the_row_is_true(row: list[str]) -> None:
    check(row)


@pytest.mark.slow
@pytest.mark.parametrize("row", of_size(small=False), ids=" ".join)
def test_the_long_row_is_true(row: list[str]) -> None:
    check(row)
