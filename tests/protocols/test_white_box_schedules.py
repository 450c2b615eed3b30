"""Random schedules of White-Box: fewer than half of each group crash, and detectors err."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.protocols.catalogue import StackPlan

from ..explorer.variants_white_box import HARMLESS, SCHEDULED, Scheduled
from .replica_schedules import Load, bench_after, broken_promise, replica_schedule

WHITE_BOX = "leader white-box"

TWO_GROUPS = (3, 3)

SYSTEMS = [(3,), (3, 1), (3, 3), (2, 1), (1, 1, 1), (5, 3), (3, 2, 1), (4, 1), (3, 3, 3)]


def outcomes(seeds: range) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in seeds:
        load = Load(2 + seed % 6, seed // 2 % 4, seed // 3 % 6)
        found[replica_schedule(WHITE_BOX, SYSTEMS[seed % len(SYSTEMS)], load, seed)] += 1
    return found


@settings(max_examples=150, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    multicasts=st.integers(1, 8),
    crashes=st.integers(0, 4),
    suspicions=st.integers(0, 6),
    seed=st.integers(0, 1 << 32),
)
def test_every_schedule_keeps_what_is_promised(
    sizes: list[int], multicasts: int, crashes: int, suspicions: int, seed: int
) -> None:
    load = Load(multicasts, crashes, suspicions)
    assert replica_schedule(WHITE_BOX, tuple(sizes), load, seed) == ""


def test_in_500_schedules() -> None:
    assert outcomes(range(500)) == {"": 500}


@pytest.mark.slow
def test_in_20000_schedules() -> None:
    assert outcomes(range(1000, 21_000)) == {"": 20_000}


def test_schedules_have_leaders_deposed_and_messages_delivered() -> None:
    """A property that always holds is worth something where something happens."""
    deposed = delivered = crashed = 0
    for seed in range(50):
        bench = bench_after(WHITE_BOX, TWO_GROUPS, Load(6, 1, 4), seed)
        assert broken_promise(bench) == ""
        assert not isinstance(bench, str)
        layers = [bench.hosts[process].stack.layers[-1] for process in range(6)]
        deposed += sum(getattr(layer, "ballot", 0) > 0 for layer in layers)
        delivered += sum(map(len, bench.delivered))
        crashed += len(bench.crashed)
    assert deposed > 100
    assert delivered > 600
    assert crashed > 25


@pytest.mark.parametrize("case", SCHEDULED, ids=lambda case: case.variant.__name__)
def test_schedules_catch_what_takes_the_explorer_long(case: Scheduled) -> None:
    plan = case.variant()
    assert any(replica_schedule(plan, TWO_GROUPS, case.load, seed) for seed in case.seeds)


@pytest.mark.parametrize("load", sorted({case.load for case in SCHEDULED}, key=repr), ids=repr)
def test_the_same_schedules_do_white_box_itself_no_harm(load: Load) -> None:
    seeds = {seed for case in SCHEDULED if case.load == load for seed in case.seeds}
    assert {replica_schedule(WHITE_BOX, TWO_GROUPS, load, seed) for seed in sorted(seeds)} == {""}


@pytest.mark.parametrize("variant", HARMLESS, ids=lambda variant: variant.__name__)
def test_what_the_paper_could_do_without(variant: Callable[[], StackPlan]) -> None:
    plan = variant()
    for seed in range(200):
        load = Load(2 + seed % 6, seed % 3, seed % 9)
        assert replica_schedule(plan, SYSTEMS[seed % 3], load, seed) == ""
