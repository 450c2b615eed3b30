"""ABCAST in small systems, every schedule: requests race with each other and with the token."""

from __future__ import annotations

import pytest

from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.result import pairs_to_see
from flexgroup.worlds.explorer.scope import PlannedCast, Scope

from .variants_abcast import abcast_whose_token_moves_after

TO_ALL = Scope(
    3, (PlannedCast(1, (0, 1, 2)), PlannedCast(1, (1, 2)), PlannedCast(2, (0, 1, 2))), fifo=False
)
"""Two requests of one process, and one of another."""

OVERLAPPING = Scope(
    3, (PlannedCast(1, (0, 1)), PlannedCast(2, (1, 2)), PlannedCast(0, (0, 2))), fifo=False
)
"""Every two of three sets of destinations have one process in common: a cycle is easily made."""

BURSTS = Scope(
    3,
    (
        PlannedCast(1, (0, 1, 2)),
        PlannedCast(1, (1, 2)),
        PlannedCast(1, (0, 1)),
        PlannedCast(2, (0, 1, 2)),
    ),
    fifo=False,
)

CHASING = Scope(
    3,
    (
        PlannedCast(1, (0, 1)),
        PlannedCast(1, (0, 1)),
        PlannedCast(1, (0, 1)),
        PlannedCast(2, (0, 1)),
    ),
    fifo=False,
)
"""With the token, process 1 may have to wait for a request of its own, while process 2 asks."""


@pytest.mark.parametrize(
    ("moves_after", "scope", "states"),
    [(1, TO_ALL, 2_651), (1, OVERLAPPING, 2_101), (2, BURSTS, 9_754), (1, CHASING, 7_290)],
    ids=["to all", "overlapping", "bursts", "chasing"],
)
def test_no_schedule_breaks_a_promise_while_the_token_moves(
    moves_after: int, scope: Scope, states: int
) -> None:
    outcome = explore(abcast_whose_token_moves_after(moves_after), scope)
    assert outcome.exhausted
    assert not outcome.violations
    assert outcome.complete == outcome.terminals > 0
    assert outcome.states == states


def test_nor_while_it_stays() -> None:
    """Every order of two messages occurs: nothing was left out."""
    outcome = explore(parse_stack("abcast"), OVERLAPPING)
    assert outcome.exhausted
    assert not outcome.violations
    assert set(pairs_to_see(OVERLAPPING)) == outcome.seen_orders
