"""Every system of a size: repaired DCC holds, the published one does not."""

from __future__ import annotations

from itertools import islice

import pytest

from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.all_systems import explore_all, systems
from flexgroup.worlds.explorer.explorer import explore


@pytest.mark.parametrize(
    ("processes", "messages", "count"), [(3, 2, 10), (3, 4, 35), (4, 2, 66), (4, 4, 1001)]
)
def test_all_multisets_of_destination_sets(processes: int, messages: int, count: int) -> None:
    ours = [tuple(c.destinations for c in s.casts) for s in systems(processes, messages)]
    assert len(ours) == len(set(ours)) == count
    assert ((0, 1),) * messages in ours
    assert (tuple(range(processes)),) * messages in ours


@pytest.mark.parametrize(("processes", "messages"), [(3, 4), (4, 2)])
@pytest.mark.parametrize("stack", ["dcc", "dcc/any", "dcc-published", "dcc-published/any"])
def test_nothing_small_breaks_dcc(stack: str, processes: int, messages: int) -> None:
    result = explore_all(parse_stack(stack), processes, messages)
    assert result.not_exhausted == 0
    assert not result.broken


def test_two_workers_share_the_systems() -> None:
    plan = parse_stack("dcc-published")
    alone, together = (explore_all(plan, 4, 2, workers=workers) for workers in (1, 2))
    assert (alone.systems, alone.states) == (together.systems, together.states)
    assert alone.transitions == together.transitions


@pytest.mark.slow
def test_some_of_four_processes_and_four_messages() -> None:
    """Three of the four that break the published protocol, and some that do not."""
    some = list(islice(systems(4, 4), 300, 330))
    repaired, published = (
        [explore(parse_stack(stack), scope) for scope in some] for stack in ("dcc", "dcc-published")
    )
    assert all(outcome.exhausted and not outcome.broken for outcome in repaired)
    broken = {300 + place: outcome.broken for place, outcome in enumerate(published)}
    assert {number: names for number, names in broken.items() if names} == {
        number: {"acyclic order"} for number in (316, 318, 327)
    }


@pytest.mark.large
def test_four_processes_and_four_messages() -> None:
    repaired = explore_all(parse_stack("dcc"), 4, 4, workers=2)
    published = explore_all(parse_stack("dcc-published"), 4, 4, workers=2)
    assert repaired.systems == published.systems == 1001
    assert repaired.not_exhausted == published.not_exhausted == 0
    assert not repaired.broken
    assert published.broken == {"acyclic order": 4}
