"""Every system of a size: repaired DCC holds, the published one does not."""

from __future__ import annotations

import pytest

from flexgroup.protocols.catalogue import parse_stack
from flexgroup.worlds.explorer.all_systems import explore_all, systems


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
def test_four_processes_and_four_messages() -> None:
    repaired = explore_all(parse_stack("dcc"), 4, 4, workers=2)
    published = explore_all(parse_stack("dcc-published"), 4, 4, workers=2)
    assert repaired.systems == published.systems == 1001
    assert repaired.not_exhausted == published.not_exhausted == 0
    assert not repaired.broken
    assert published.broken == {"acyclic order": 4}
