"""`vcube-atomic-majority` on trial with wrong suspicions: what docs/findings.md says is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.explorer import SearchLimits, explore
from flexgroup.worlds.explorer.search_setup import SearchOptions

from .variants_vcube import broadcasts

PAGE = Path(__file__).resolve().parents[2] / "docs" / "findings.md"

ALL_PROMISES = (
    "integrity",
    "conduct",
    "acyclic order",
    "prefix order",
    "validity",
    "uniform agreement",
)

MOST_STATES = 20_000

ROWS = [
    row
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if re.match(r"\| `vcube-atomic-majority` \| \d+ \| [\d, ]+ \| \d+ \| \d+ \| [\d,]+ \|", line)
    for row in [[cell.strip(" `") for cell in line.strip().strip("|").split("|")]]
    if int(row[5].replace(",", "")) < MOST_STATES
]


def test_the_page_has_scopes_with_crashes_and_with_suspicions() -> None:
    assert {(row[3], row[4]) for row in ROWS} == {("1", "0"), ("0", "1")}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(row[1:5]))
def test_the_row_is_true(row: list[str]) -> None:
    stack, processes, origins, crashes, suspicions, states, _ = row
    scope = broadcasts(
        int(processes),
        *map(int, origins.split(",")),
        crashes=int(crashes),
        suspicions=int(suspicions),
    )
    outcome = explore(parse_stack(stack), scope, SearchOptions(properties=ALL_PROMISES))
    assert outcome.exhausted
    assert not outcome.violations
    assert f"{outcome.states:,}" == states


def test_processes_that_suspect_each_other_do_not_part() -> None:
    """Nor do they agree before one of them is trusted again; so the search has no end."""
    scope = broadcasts(2, 0, 1, suspicions=2)
    options = SearchOptions(properties=("acyclic order", "prefix order", "integrity", "conduct"))
    outcome = explore(
        parse_stack("vcube-atomic-majority"), scope, options, SearchLimits(states=5000)
    )
    assert not outcome.violations
