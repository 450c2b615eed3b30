"""Protocols between groups of replicas on trial: what their pages say was explored is so.

With one replica in each group they are the protocols that they run: system by system, the explorer
sees the same orders and gives the same verdicts.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.all_systems import explore_all, systems
from flexgroup.worlds.explorer.comparison import acyclic_orders, compare, verdict_on
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.scope import from_clients

from .page_rows import of_size, rows_of, scope_of
from .variants_replicated import between_groups

ROWS = rows_of("replicated.md", "ft-abcast.md")
"""Stack, sizes of groups, messages, channels, crashes, suspicions and states of each scope."""


def check(row: list[str]) -> None:
    scope = scope_of(row, crashes=int(row[4]), suspicions=int(row[5]))
    if scope.bounds.crashes:
        scope = replace(scope, crashing=(0,))
    outcome = explore(parse_stack(row[0]), scope)
    assert outcome.exhausted
    assert not outcome.violations
    assert outcome.complete == outcome.terminals > 0
    assert f"{outcome.states:,}" == row[6]


def test_the_pages_have_scopes_of_every_stack_with_crashes_and_with_suspicions() -> None:
    tried = {(row[0].split()[-1], *row[4:6]) for row in ROWS}
    for name in ("skeen-cft", "df-cft", "dcc-cft", "ft-abcast"):
        assert {(name, "0", "0"), (name, "0", "1")} <= tried
    assert {("df-cft", "1", "0"), ("dcc-cft", "1", "0"), ("ft-abcast", "1", "0")} <= tried
    assert "3,1,1" in {row[1] for row in ROWS}


@pytest.mark.parametrize("row", of_size(ROWS, 6, small=True), ids=" ".join)
def test_the_row_is_true(row: list[str]) -> None:
    check(row)


@pytest.mark.slow
@pytest.mark.parametrize("row", of_size(ROWS, 6, small=False), ids=" ".join)
def test_the_long_row_is_true(row: list[str]) -> None:
    check(row)


RESTARTS = rows_of("replicated.md", like=r"\| `[^|]+` \| [\d,]+ \| \{[\d,]+\} \| \d \| [\d,]+ \|")
"""Stack, sizes of groups, message, who crashes and may start again, and states."""


def check_restarts(row: list[str]) -> None:
    stack, sizes, message, crashing, states = row
    groups = tuple(map(int, message.strip("{}").split(",")))
    scope = between_groups([int(size) for size in sizes.split(",")], groups, crashes=1, restarts=1)
    outcome = explore(parse_stack(stack), replace(scope, crashing=(int(crashing),)))
    assert outcome.exhausted
    assert not outcome.violations
    assert outcome.complete == outcome.terminals > 1
    assert f"{outcome.states:,}" == states


def test_a_member_that_crashes_and_starts_again_is_explored() -> None:
    check_restarts(RESTARTS[0])


@pytest.mark.slow
@pytest.mark.parametrize("row", RESTARTS[1:], ids=" ".join)
def test_others_with_restarts_are_too(row: list[str]) -> None:
    check_restarts(row)


def compared(
    plain: str, replicated: str, processes: int, messages: int, every: int = 1, first: int = 0
) -> tuple[int, int]:
    """Compare two stacks in every so manieth system of a size: how many are exhausted and equal,
    and how many have a cycle."""
    plans = parse_stack(plain), parse_stack(replicated)
    alone = replicas_of_sizes([1] * processes)
    verdicts = [
        (
            verdict_on(explore(plans[0], scope, keep_going=True)),
            verdict_on(explore(plans[1], replace(scope, replicas=alone), keep_going=True)),
        )
        for scope in islice(systems(processes, messages), first, None, every)
    ]
    found = compare(plans, verdicts)
    assert not found.unlike
    return found.exhausted, sum("acyclic order" in first.broken for first, _ in verdicts)


PAIRS = [
    ("df", "log df-cft"),
    ("dcc", "log dcc-cft"),
    ("dcc", "leader paxos dcc-cft"),
    ("dcc-published", "log dcc-cft-published"),
    ("df", "log df-bft"),
    ("dcc", "log dcc-bft"),
    ("dcc-published", "log dcc-bft-published"),
    ("dcc", "log byzcast"),
    ("dcc", "log byzcast/binary"),
    ("dcc", "log byzcast/chain"),
    ("df", "leader log ft-abcast"),
]


@pytest.mark.parametrize(("plain", "replicated"), PAIRS)
def test_with_groups_of_one_it_is_the_same_protocol(plain: str, replicated: str) -> None:
    assert compared(plain, replicated, 3, 4, every=3) == (12, 0)
    assert compared(plain, replicated, 4, 3, every=40) == (8, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("plain", "replicated"), PAIRS)
def test_so_it_is_where_messages_are_delivered_in_a_circle(plain: str, replicated: str) -> None:
    """Among these systems are two of the four in which `dcc-published` breaks its promise."""
    cyclic = 2 if plain == "dcc-published" else 0
    assert compared(plain, replicated, 4, 4, every=11, first=8) == (91, cyclic)


@pytest.mark.large
@pytest.mark.parametrize(("plain", "replicated"), PAIRS)
def test_in_all_systems_of_four_groups_and_four_messages(plain: str, replicated: str) -> None:
    cyclic = 4 if plain == "dcc-published" else 0
    assert compared(plain, replicated, 4, 4) == (1001, cyclic)


def test_skeen_with_groups_of_one_is_skeen() -> None:
    """What is too large to be exhausted is in `test_lockstep`."""
    pairs = from_clients(4, (0, 1), (0, 1), (2, 3), (2, 3))
    alone = replace(pairs, replicas=replicas_of_sizes([1] * 4))
    plain = explore(parse_stack("skeen"), pairs)
    grouped = explore(parse_stack("log skeen-cft"), alone)
    assert (plain.states, grouped.states) == (7_095, 1_089)
    assert plain.terminal_orders == grouped.terminal_orders == acyclic_orders(pairs)
    assert not plain.broken
    assert not grouped.broken


def test_all_systems_of_a_size_are_of_groups_of_one() -> None:
    assert explore_all(parse_stack("log dcc-cft"), 3, 3).states == 416


RING = ((0, 1), (0, 2), (1, 2))


def test_as_printed_dcc_between_groups_lacks_fifo_channels() -> None:
    """Three groups of one, and three messages: not even `dcc-published` is broken so soon."""
    ring = between_groups([1, 1, 1], *RING, fifo=False)
    assert "acyclic order" in explore(parse_stack("log dcc-cft-published"), ring).broken
    assert not explore(parse_stack("log dcc-cft"), ring).broken
    fifo = between_groups([1, 1, 1], *RING)
    assert not explore(parse_stack("log dcc-cft-published"), fifo).broken


def test_as_printed_ft_abcast_blocks_without_any_fault() -> None:
    scope = between_groups([2, 1], (0, 1), (0,))
    blocked = explore(parse_stack("leader log ft-abcast-published"), scope, keep_going=True)
    assert blocked.broken == {"validity", "agreement", "uniform agreement"}
    assert not explore(parse_stack("log ft-abcast-published"), scope).broken
