"""ByzCast and DCC-bft on trial: what their pages say was explored, with liars, is so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flexgroup.liars.named import KINDS, liars_of
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.explorer import explore

from .page_rows import of_size, rows_of, scope_of

ROWS = rows_of("byzcast.md", "dcc-bft.md")
"""Stack, sizes of groups, messages, channels, liars, states and verdict of each scope."""


def check(row: list[str]) -> None:
    stack, _, _, _, liars, *_ = row
    # A timer may run out where one matters.
    scope = scope_of(row, timers=int("slow" in liars or "sealed" in stack))
    named = () if liars == "nobody" else liars_of(liars.split())
    outcome = explore(parse_stack(stack), replace(scope, liars=named))
    assert f"{outcome.states:,}" == row[5]
    if row[6] != "holds":
        assert outcome.broken == {row[6]}
        return
    assert outcome.exhausted
    assert not outcome.violations
    assert outcome.complete == outcome.terminals > 0


@pytest.mark.parametrize("row", of_size(ROWS, 5, small=True), ids=" ".join)
def test_the_row_is_true(row: list[str]) -> None:
    check(row)


@pytest.mark.slow
@pytest.mark.parametrize("row", of_size(ROWS, 5, small=False), ids=" ".join)
def test_the_long_row_is_true(row: list[str]) -> None:
    check(row)


@pytest.mark.parametrize("stack", ["log byzcast", "log dcc-bft"])
def test_the_pages_have_every_kind_of_liar(stack: str) -> None:
    """Each holds with f of them, and with f + 1 some promise is broken."""
    tried = {row[4].rpartition(":")[2] for row in ROWS if row[0] == stack and row[6] == "holds"}
    assert tried == {"nobody", *KINDS}
    assert any(len(row[4].split()) > 1 for row in ROWS if row[0] == stack and row[6] != "holds")


@pytest.mark.parametrize("stack", ["log byzcast-published", "log dcc-bft-published"])
def test_as_printed_a_relay_that_says_nothing_is_harmless_and_one_that_leaves_out_is_not(
    stack: str,
) -> None:
    verdicts = {row[4]: row[6] for row in ROWS if row[0] == stack}
    assert verdicts["nobody"] == verdicts["3:silent"] == verdicts["3:twin"] == "holds"
    assert {verdicts["3:skip"], verdicts["3:forge"]} <= {"prefix order", "acyclic order"}
