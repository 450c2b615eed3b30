"""`paxos` on trial with crashes and wrong suspicions: what its page says was explored is so."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.random_walks import RandomWalks

from .variant_parts import Case
from .variants import named
from .variants_paxos import DEEP_CASES, THREE_BALLOTS, replicated

PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocols" / "paxos.md"

MOST_STATES = 50_000
"""A scope with more takes seconds."""

LARGE = 500_000
"""One with as many is searched with `pytest -m large` only."""

PAXOS = parse_stack("leader paxos")


def rows() -> list[list[str]]:
    """Origins, channels, crashes, suspicions and states of each scope."""
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| [\d, ]+ \| (fifo|reordering) \| \d+ \| \d+ \| [\d,]+ \|", line)
    ]


def of_size(sizes: range) -> list[list[str]]:
    return [row for row in rows() if int(row[4].replace(",", "")) in sizes]


def check(row: list[str]) -> None:
    origins, channels, crashes, suspicions, states = row
    scope = replicated(
        *map(int, origins.split(",")),
        fifo=channels == "fifo",
        crashes=int(crashes),
        suspicions=int(suspicions),
    )
    outcome = explore(PAXOS, scope)
    assert outcome.exhausted
    assert not outcome.violations
    assert outcome.complete == outcome.terminals > 1
    assert f"{outcome.states:,}" == states


def test_the_page_has_scopes_with_crashes_and_with_suspicions_and_with_both() -> None:
    assert {(row[2], row[3]) for row in rows()} >= {("1", "0"), ("0", "1"), ("1", "1")}


@pytest.mark.parametrize("row", of_size(range(MOST_STATES)), ids=" ".join)
def test_the_row_is_true(row: list[str]) -> None:
    check(row)


@pytest.mark.slow
@pytest.mark.parametrize("row", of_size(range(MOST_STATES, LARGE)), ids=" ".join)
def test_the_long_row_is_true(row: list[str]) -> None:
    check(row)


@pytest.mark.large
@pytest.mark.parametrize("row", of_size(range(LARGE, sys.maxsize)), ids=" ".join)
def test_the_large_row_is_true(row: list[str]) -> None:
    check(row)


def test_three_ballots_meet_in_walks_too_long_to_be_exhausted() -> None:
    outcome = RandomWalks(PAXOS, THREE_BALLOTS, 300, seed=1, depth=3).take()
    assert not outcome.violations
    assert outcome.complete > 0


@pytest.mark.slow
@pytest.mark.parametrize("case", DEEP_CASES, ids=named)
def test_a_deep_variant_is_caught(case: Case) -> None:
    outcome = explore(case.variant(), case.scope)
    assert case.broken in outcome.broken


@pytest.mark.large
@pytest.mark.parametrize("scope", {case.scope: None for case in DEEP_CASES}, ids=["a", "b", "c"])
def test_paxos_itself_is_not(scope: object) -> None:
    (case, *_) = [case for case in DEEP_CASES if case.scope == scope]
    outcome = explore(PAXOS, case.scope)
    assert outcome.exhausted
    assert not outcome.violations
