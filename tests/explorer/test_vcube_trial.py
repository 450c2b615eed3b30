"""Broadcasts over VCube on trial with crashes: what docs/findings.md says of them is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flexgroup.cli.counterexamples import diagram_of
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.search_setup import SearchOptions

from .variants_vcube import broadcasts

PAGE = Path(__file__).resolve().parents[2] / "docs" / "findings.md"

AMONG_THE_CORRECT = ("integrity", "conduct", "acyclic order", "validity", "agreement")

ROWS = [
    [cell.strip(" `") for cell in line.strip().strip("|").split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if re.match(r"\| `[^|]+` \| \d+ \| [\d, ]+ \| \d+ \| [\d,]+ \| holds \|", line)
]


def test_the_page_has_scopes_with_crashes() -> None:
    assert {row[0] for row in ROWS} == {"vcube-atomic", "all2all-atomic", "vcube-reliable"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]} {row[2]}")
def test_the_row_is_true(row: list[str]) -> None:
    stack, processes, origins, crashes, states, _ = row
    scope = broadcasts(int(processes), *map(int, origins.split(",")), crashes=int(crashes))
    properties = [
        name for name in AMONG_THE_CORRECT if name != "acyclic order" or "atomic" in stack
    ]
    outcome = explore(parse_stack(stack), scope, SearchOptions(properties=tuple(properties)))
    assert outcome.exhausted
    assert not outcome.violations
    assert f"{outcome.states:,}" == states
    # Some runs end with a message lost, and some with all delivered, by those that are up.
    assert len({len(orders[1]) for orders in outcome.terminal_orders}) > 1


@pytest.mark.parametrize("stack", ["vcube-atomic", "all2all-atomic"])
def test_processes_that_suspect_each_other_part(stack: str) -> None:
    scope = broadcasts(2, 0, 1, suspicions=2)
    outcome = explore(parse_stack(stack), scope, SearchOptions(properties=("acyclic order",)))
    assert outcome.broken == {"acyclic order"}
    assert outcome.violations[0].steps == 4


@pytest.mark.parametrize("stack", ["vcube-atomic", "all2all-atomic"])
def test_one_false_suspicion_costs_the_suspect_and_breaks_no_order(stack: str) -> None:
    scope = broadcasts(2, 0, 1, suspicions=1)
    kept = explore(
        parse_stack(stack),
        scope,
        SearchOptions(properties=("integrity", "conduct", "acyclic order")),
    )
    assert kept.exhausted
    assert not kept.violations
    lost = explore(parse_stack(stack), scope, SearchOptions(properties=("validity",)))
    assert lost.broken == {"validity"}


def test_best_effort_breaks_agreement_if_the_source_crashes() -> None:
    scope = broadcasts(3, 0, crashes=1)
    plan = parse_stack("vcube-best-effort")
    assert explore(plan, scope, SearchOptions(properties=("agreement",))).broken == {"agreement"}
    assert not explore(plan, scope, SearchOptions(properties=("integrity", "validity"))).violations


@pytest.mark.slow
def test_the_published_algorithm_breaks_the_order_after_a_crash() -> None:
    plan, scope = parse_stack("vcube-atomic-published"), broadcasts(3, 0, 1, crashes=1)
    outcome = explore(plan, scope, SearchOptions(properties=("acyclic order",)))
    assert outcome.broken == {"acyclic order"}
    (violation,) = outcome.violations
    assert violation.steps == 14
    drawn = PAGE.parent / "figures" / "vcube-atomic-published-acyclic-order.svg"
    picture = diagram_of(plan, scope, violation).standalone
    assert f"{picture}\n" == drawn.read_text(encoding="utf-8")


@pytest.mark.parametrize(("processes", "origins"), [(2, (0, 1)), (3, (0,))])
def test_less_is_not_enough_to_break_it(processes: int, origins: tuple[int, ...]) -> None:
    scope = broadcasts(processes, *origins, crashes=1)
    outcome = explore(
        parse_stack("vcube-atomic-published"), scope, SearchOptions(properties=AMONG_THE_CORRECT)
    )
    assert outcome.exhausted
    assert not outcome.violations
