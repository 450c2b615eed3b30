"""Causal order to any destinations on trial: chains of messages, and crashes, every schedule."""

from __future__ import annotations

import pytest

from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope

CHAIN = (PlannedCast(0, (3,)), PlannedCast(0, (1,)), PlannedCast(1, (2,)), PlannedCast(2, (3,)))
"""What process 2 sends to process 3 may follow what process 0 sent there, by way of process 1."""


@pytest.mark.parametrize(
    ("stack", "states"), [("causal-rst", 30), ("causal-ses", 30), ("causal-isis", 679)]
)
def test_a_chain_of_messages_to_one_each(stack: str, states: int) -> None:
    outcome = explore(parse_stack(stack), Scope(4, CHAIN, fifo=False))
    assert outcome.exhausted
    assert not outcome.violations
    assert outcome.states == states
    assert outcome.complete == outcome.terminals > 0


def test_what_is_brought_along_survives_any_crash() -> None:
    """Whoever stops, at any moment: of those that live on, none misses what another delivered."""
    casts = (PlannedCast(0, (1, 2)), PlannedCast(1, (2,)))
    scope = Scope(3, casts, fifo=False, bounds=Bounds(crashes=1))
    outcome = explore(parse_stack("causal-isis"), scope)
    assert outcome.exhausted
    assert not outcome.violations
    assert outcome.states == 4_474
    assert outcome.complete == outcome.terminals > 0
