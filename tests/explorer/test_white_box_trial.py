"""`white-box` on trial: it is Skeen's with groups of one, and what its page says is so."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.all_systems import systems
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.random_walks import RandomWalks
from flexgroup.worlds.explorer.result import pairs_to_see
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope

PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocols" / "white-box.md"

MOST_STATES = 50_000
"""A scope with more takes seconds."""

LARGE = 500_000
"""One with as many is searched with `pytest -m large` only."""

WHITE_BOX = parse_stack("leader white-box")
SKEEN = parse_stack("skeen")


# Groups of one replica.


def in_groups_of_one(scope: Scope) -> Scope:
    return replace(scope, replicas=replicas_of_sizes([1] * scope.processes))


def check_as_skeen(scope: Scope) -> None:
    theirs, ours = explore(SKEEN, scope), explore(WHITE_BOX, in_groups_of_one(scope))
    assert theirs.exhausted
    assert ours.exhausted
    assert ours.broken == theirs.broken == set()
    assert ours.terminal_orders == theirs.terminal_orders
    assert ours.seen_orders == theirs.seen_orders
    assert ours.complete == ours.terminals > 0


def destinations(scope: Scope) -> int:
    return sum(len(cast.destinations) for cast in scope.casts)


TWO_MESSAGES = list(systems(3, 2))
THREE_TO_PAIRS = [scope for scope in systems(3, 3) if destinations(scope) == 6]


def test_there_are_so_many_systems() -> None:
    assert (len(TWO_MESSAGES), len(THREE_TO_PAIRS)) == (10, 10)


@pytest.mark.parametrize(
    "scope", [scope for scope in TWO_MESSAGES if destinations(scope) < 6], ids=Scope.described
)
def test_two_messages_are_ordered_as_skeen_orders_them(scope: Scope) -> None:
    check_as_skeen(scope)


@pytest.mark.slow
def test_so_are_two_to_all() -> None:
    check_as_skeen(TWO_MESSAGES[-1])


def test_so_are_three_to_two_of_three() -> None:
    check_as_skeen(THREE_TO_PAIRS[0])


@pytest.mark.slow
@pytest.mark.parametrize("scope", THREE_TO_PAIRS[1:], ids=Scope.described)
def test_so_are_all_of_three_to_pairs(scope: Scope) -> None:
    check_as_skeen(scope)


def walk_as_skeen(number: int, walks: int) -> None:
    """Of four groups and four messages: too many states to exhaust, for either of the two."""
    scope = list(systems(4, 4))[number]
    theirs = RandomWalks(SKEEN, scope, walks, seed=number).take()
    ours = RandomWalks(WHITE_BOX, in_groups_of_one(scope), walks, seed=number).take()
    assert ours.broken == theirs.broken == set()
    assert ours.complete == theirs.complete == walks
    assert ours.seen_orders == theirs.seen_orders == set(pairs_to_see(scope))


@pytest.mark.parametrize("number", [100, 600])
def test_walks_of_four_messages_to_four_groups(number: int) -> None:
    walk_as_skeen(number, 30)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(0, 1001, 200))
def test_more_walks_of_four_messages_to_four_groups(number: int) -> None:
    walk_as_skeen(number, 60)


# Groups of several.


def rows() -> list[list[str]]:
    """Replicas, messages, crash, suspicion and states of each scope."""
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| [\d,]+ \| [\d:{}, ]+ \| [\d-]+ \| [\d:-]+ \| [\d,]+ \|", line)
    ]


def of_size(sizes: range) -> list[list[str]]:
    return [row for row in rows() if int(row[4].replace(",", "")) in sizes]


def scope_of(sizes: str, messages: str, crash: str, suspicion: str) -> Scope:
    replicas = replicas_of_sizes([int(size) for size in sizes.split(",")])
    size = sum(map(len, replicas))
    casts: list[PlannedCast] = []
    for origin, members in re.findall(r"(?:(\d+):)?\{([\d,]+)\}", messages):
        to = tuple(map(int, members.split(",")))
        casts.append(PlannedCast(int(origin) if origin else size, to))
    pairs = [tuple(map(int, pair.split(":"))) for pair in suspicion.split() if pair != "-"]
    crashing = tuple(int(process) for process in crash.split() if process != "-")
    return Scope(
        size,
        tuple(casts),
        bounds=Bounds(crashes=len(crashing), suspicions=len(pairs)),
        crashing=crashing,
        suspecting=tuple((p, q) for p, q in pairs),
        replicas=replicas,
    )


def check(row: list[str]) -> None:
    outcome = explore(WHITE_BOX, scope_of(*row[:4]))
    assert outcome.exhausted
    assert not outcome.violations
    assert outcome.complete == outcome.terminals > 1
    assert f"{outcome.states:,}" == row[4]


def test_the_page_has_scopes_with_a_crash_and_with_a_suspicion_and_two_messages() -> None:
    assert {(row[2] != "-", row[3] != "-") for row in rows()} >= {(True, False), (False, True)}
    assert any(row[1].count("{") > 1 for row in rows())


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


def test_two_messages_and_both_faults_in_walks_too_long_to_be_exhausted() -> None:
    scope = scope_of("3,1", "0:{0,1,2,3} 3:{0,1,2,3}", "1", "1:0")
    outcome = RandomWalks(WHITE_BOX, scope, 200, seed=1, depth=3).take()
    assert not outcome.violations
    assert outcome.complete > 0


# Restarts.


def rows_with_restarts() -> list[list[str]]:
    """Replicas, messages, who crashes and starts again, and states of each scope."""
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| [\d,]+ \| [\d:{}, ]+ \| \d \| [\d,]+ \|", line)
    ]


def test_the_page_has_scopes_with_restarts() -> None:
    assert len(rows_with_restarts()) > 1


@pytest.mark.parametrize("row", rows_with_restarts(), ids=" ".join)
def test_the_row_with_a_restart_is_true(row: list[str]) -> None:
    scope = scope_of(row[0], row[1], row[2], "-")
    outcome = explore(WHITE_BOX, replace(scope, bounds=Bounds(crashes=1, restarts=1)))
    assert outcome.exhausted
    assert not outcome.violations
    assert outcome.complete == outcome.terminals > 1
    assert f"{outcome.states:,}" == row[3]
