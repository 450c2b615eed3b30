"""Safe delivery in small systems, every schedule: what is delivered early is caught by a crash."""

from __future__ import annotations

import pytest

from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope
from flexgroup.worlds.explorer.search_setup import SearchOptions

from .variants_safe import reliable_and_safe_with

UNIFORM = SearchOptions(properties=("uniform agreement",))

LOST_WITH_ITS_SENDER = Scope(
    2, (PlannedCast(0, (0, 1)),), bounds=Bounds(losses=1, crashes=1, timers=3)
)
"""What the sender sends is lost, and the sender crashes before it has sent it again."""

RACE = Scope(2, (PlannedCast(0, (0, 1)), PlannedCast(1, (0, 1))))


def test_one_acknowledgement_too_few_is_caught() -> None:
    early = explore(reliable_and_safe_with(lacking=1), LOST_WITH_ITS_SENDER, UNIFORM)
    assert early.broken == {"uniform agreement"}
    left_alone = explore(reliable_and_safe_with(lacking=0), LOST_WITH_ITS_SENDER, UNIFORM)
    assert left_alone.exhausted
    assert not left_alone.violations


def test_without_it_a_crash_breaks_uniform_agreement() -> None:
    """`reliable` promises agreement among those that live on, and no more."""
    outcome = explore(parse_stack("reliable"), LOST_WITH_ITS_SENDER, UNIFORM)
    assert outcome.broken == {"uniform agreement"}


@pytest.mark.parametrize(
    "below", ["fifo", "causal", "causal-rst", "causal-ses", "atomic", "skeen", "df"]
)
def test_it_keeps_every_order(below: str) -> None:
    outcome = explore(parse_stack(f"{below} safe"), RACE)
    assert outcome.exhausted
    assert not outcome.violations
    assert outcome.complete == outcome.terminals > 0
