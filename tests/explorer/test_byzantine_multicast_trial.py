"""ByzCast and DCC-bft on trial: what their pages say was explored, with liars, is so."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from flexgroup.liars.named import KINDS, liars_of
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.scope import Scope

from .variants_replicated import between_groups

PAGES = Path(__file__).resolve().parents[2] / "docs" / "protocols"

MOST_STATES = 10_000


def rows() -> list[list[str]]:
    """Stack, sizes of groups, messages, channels, liars, states and verdict of each scope."""
    return [
        [cell.strip(" `") for cell in line.strip().strip("|").split("|")]
        for page in ("byzcast.md", "dcc-bft.md")
        for line in (PAGES / page).read_text(encoding="utf-8").splitlines()
        if re.match(r"\| `[^|]+` \| [\d,]+ \| [\d{}, ]+ \| (fifo|reordering) \|", line)
    ]


def of_size(small: bool) -> list[list[str]]:
    return [row for row in rows() if (int(row[5].replace(",", "")) < MOST_STATES) is small]


def scope_of(row: list[str]) -> Scope:
    """Messages are written by the numbers of groups; a timer may run out where one matters."""
    stack, sizes, messages, channels, liars, _, _ = row
    groups = [tuple(map(int, text.split(","))) for text in re.findall(r"\{([\d,]+)\}", messages)]
    timers = int("slow" in liars or "sealed" in stack)
    scope = between_groups(
        [int(size) for size in sizes.split(",")], *groups, fifo=channels == "fifo", timers=timers
    )
    return replace(scope, liars=() if liars == "nobody" else liars_of(liars.split()))


def check(row: list[str]) -> None:
    outcome = explore(parse_stack(row[0]), scope_of(row))
    assert f"{outcome.states:,}" == row[5]
    if row[6] != "holds":
        assert outcome.broken == {row[6]}
        return
    assert outcome.exhausted
    assert not outcome.violations
    assert outcome.complete == outcome.terminals > 0


@pytest.mark.parametrize("row", of_size(small=True), ids=" ".join)
def test_the_row_is_true(row: list[str]) -> None:
    check(row)


@pytest.mark.slow
@pytest.mark.parametrize("row", of_size(small=False), ids=" ".join)
def test_the_long_row_is_true(row: list[str]) -> None:
    check(row)


@pytest.mark.parametrize("stack", ["log byzcast", "log dcc-bft"])
def test_the_pages_have_every_kind_of_liar(stack: str) -> None:
    """Each holds with f of them, and with f + 1 some promise is broken."""
    tried = {row[4].rpartition(":")[2] for row in rows() if row[0] == stack and row[6] == "holds"}
    assert tried == {"nobody", *KINDS}
    assert any(len(row[4].split()) > 1 for row in rows() if row[0] == stack and row[6] != "holds")


@pytest.mark.parametrize("stack", ["log byzcast-published", "log dcc-bft-published"])
def test_as_printed_a_relay_that_says_nothing_is_harmless_and_one_that_leaves_out_is_not(
    stack: str,
) -> None:
    verdicts = {row[4]: row[6] for row in rows() if row[0] == stack}
    assert verdicts["nobody"] == verdicts["3:silent"] == verdicts["3:twin"] == "holds"
    assert {verdicts["3:skip"], verdicts["3:forge"]} <= {"prefix order", "acyclic order"}
