"""Restarts in the explorer: processes that crash, also within a step, and come back."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.testing.orders import wrongly_delivered
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.random_walks import RandomWalks
from flexgroup.worlds.explorer.schedule import script, stage
from flexgroup.worlds.explorer.scope import Scope

from .variant_parts import Case
from .variants import named
from .variants_paxos import (
    FOLLOWER_RESTARTS,
    RESTART_CASES,
    VOTER_RESTARTS,
    paxos_that_delivers_again,
    replicated,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocols" / "paxos.md"

MOST_STATES = 10_000

PAXOS = parse_stack("leader paxos")


def rows() -> list[list[str]]:
    """Origins, channels, who crashes and restarts, who suspects whom, and states of each scope."""
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| [\d, ]+ \| (fifo|reordering) \| (\d|any) \| (\d:\d|-) \| [\d,]+ \|", line)
        and not re.match(r"\| [\d, ]+ \| \w+ \| \d+ \| \d+ \|", line)
    ]


def short_rows() -> list[list[str]]:
    """The same where slots are set aside one by one."""
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")[1:]]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `leader paxos/short` |")
    ]


def scope_of(row: list[str]) -> Scope:
    origins, channels, crashing, suspecting, _ = row
    pairs = [] if suspecting == "-" else [tuple(map(int, suspecting.split(":")))]
    scope = replicated(
        *map(int, origins.split(",")),
        fifo=channels == "fifo",
        crashes=1,
        restarts=1,
        suspicions=len(pairs),
    )
    return replace(
        scope,
        crashing=() if crashing == "any" else (int(crashing),),
        suspecting=tuple((p, q) for p, q in pairs),
    )


def check_row(row: list[str], plan: StackPlan = PAXOS) -> None:
    outcome = explore(plan, scope_of(row))
    assert outcome.exhausted
    assert not outcome.violations
    assert outcome.complete == outcome.terminals > 1
    assert f"{outcome.states:,}" == row[4]


@pytest.mark.parametrize("row", short_rows(), ids=" ".join)
def test_a_scope_is_exhausted_in_which_slots_are_set_aside(row: list[str]) -> None:
    check_row(row, parse_stack("leader paxos/short"))


def of_size(small: bool) -> list[list[str]]:
    return [row for row in rows() if (int(row[4].replace(",", "")) < MOST_STATES) is small]


def test_the_page_has_such_scopes() -> None:
    assert len(short_rows()) > 1
    assert len(of_size(small=True)) > 1
    assert of_size(small=False)


@pytest.mark.parametrize("row", of_size(small=True), ids=" ".join)
def test_the_row_is_true(row: list[str]) -> None:
    check_row(row)


@pytest.mark.slow
@pytest.mark.parametrize("row", of_size(small=False), ids=" ".join)
def test_the_long_row_is_true(row: list[str]) -> None:
    check_row(row)


def is_deep(case: Case) -> bool:
    return case.scope == VOTER_RESTARTS


@pytest.mark.parametrize("case", [case for case in RESTART_CASES if not is_deep(case)], ids=named)
def test_a_variant_is_caught(case: Case) -> None:
    assert case.broken in explore(case.variant(), case.scope).broken


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in RESTART_CASES if is_deep(case)], ids=named)
def test_a_deep_variant_is_caught(case: Case) -> None:
    assert case.broken in explore(case.variant(), case.scope).broken


def test_paxos_itself_is_not_in_walks() -> None:
    outcome = RandomWalks(PAXOS, VOTER_RESTARTS, 300, seed=1, depth=3).take()
    assert not outcome.violations
    assert outcome.complete > 0


def test_workers_find_the_same_states() -> None:
    alone = explore(PAXOS, FOLLOWER_RESTARTS)
    together = explore(PAXOS, FOLLOWER_RESTARTS, workers=2)
    assert (together.states, together.terminals) == (alone.states, alone.terminals)


def test_a_counterexample_restarts_on_the_bench_and_in_its_script() -> None:
    """The bench performs it as the search did, and the same words are commands of scripts."""
    plan = paxos_that_delivers_again()
    (violation, *_) = explore(plan, FOLLOWER_RESTARTS).violations
    bench = stage(plan, FOLLOWER_RESTARTS, violation.run)
    assert wrongly_delivered(bench.delivered)
    text = script("leader paxos", FOLLOWER_RESTARTS, violation.run)
    assert re.search(r"^crash(-after \d+ \S+)? ", text, re.MULTILINE)
    assert re.search(r"^recover 2$", text, re.MULTILINE)


def test_without_restarts_what_is_stored_makes_no_states() -> None:
    """So that the numbers of states of scopes without restarts do not depend on it."""
    assert explore(PAXOS, replicated(1, crashes=1)).states == 768
