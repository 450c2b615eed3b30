"""Failure detectors that err: what breaks `vcube-atomic` does not break `vcube-atomic-majority`."""

from __future__ import annotations

from collections import Counter

import pytest

from flexgroup.protocols.catalogue import StackPlan
from flexgroup.protocols.vcube_atomic_majority import VCubeAtomicMajority

from ..explorer.variants_majority import (
    majority_that_confirms_at_once,
    majority_that_forgets_what_it_accepted,
)
from .broadcast_runs import run
from .suspicion_schedules import AGREEMENT, ORDER, Errors, suspicion_schedule

MAJORITY = "vcube-atomic-majority"
SIZES = (4, 5, 6, 7, 8, 3)


def outcomes(stack: str | StackPlan, seeds: range) -> Counter[str]:
    """Crashes of fewer than half of the processes, and one to four wrong suspicions."""
    found: Counter[str] = Counter()
    for seed in seeds:
        size = SIZES[seed % len(SIZES)]
        errors = Errors(seed // 6 % ((size + 1) // 2), 1 + seed // 3 % 4)
        found[suspicion_schedule(stack, size, 2 + seed % 4, errors, seed)] += 1
    return found


def test_wrong_suspicions_break_nothing() -> None:
    assert outcomes(MAJORITY, range(1000, 1500)) == {"": 500}


@pytest.mark.large
def test_in_5000_schedules() -> None:
    assert outcomes(MAJORITY, range(1000, 6000)) == {"": 5000}


def test_the_same_schedules_break_the_corrected_algorithm_of_the_paper() -> None:
    """Which is for perfect detectors."""
    found = outcomes("vcube-atomic", range(400))
    assert found[""] < 40
    assert found[AGREEMENT] > 300
    assert found[ORDER] > 0


def test_they_would_not_if_who_lacks_timestamps_confirmed_others() -> None:
    found = outcomes(majority_that_confirms_at_once(), range(180, 190))
    assert found[ORDER] > 0


def test_they_would_not_if_a_later_coordinator_were_not_told_what_was_accepted() -> None:
    plan = majority_that_forgets_what_it_accepted()
    found = {suspicion_schedule(plan, 3, 3, Errors(0, 4), seed) for seed in range(90, 110)}
    assert ORDER in found


@pytest.mark.parametrize("n", [2, 3, 5, 8, 16, 64])
def test_without_suspicions_it_costs_what_vcube_atomic_costs(n: int) -> None:
    ours, others = run(MAJORITY, n), run("vcube-atomic", n)
    assert ours.sent == others.sent
    assert ours.latency == others.latency


def test_what_all_have_delivered_is_forgotten() -> None:
    casts = [(30.0 * number, number % 8) for number in range(60)]
    for (layer,) in run(MAJORITY, 8, casts).layers:
        assert isinstance(layer, VCubeAtomicMajority)
        assert layer.log.count == 60
        assert len(layer.log.kept) < 40
        assert not layer.agreement.pending
        assert not layer.received


def test_after_a_crash_messages_are_still_delivered_and_nothing_is_kept() -> None:
    casts = [(20.0 * number, number % 7) for number in range(10)]
    outcome = run(MAJORITY, 8, casts, crashes=[(5.5, 7)], detection=3.0)
    assert {tuple(order) for order in outcome.delivered[:7]} == {tuple(outcome.delivered[0])}
    assert len(outcome.delivered[0]) == 10
    for (layer,) in outcome.layers[:7]:
        assert isinstance(layer, VCubeAtomicMajority)
        assert not layer.agreement.pending
        assert not layer.agreement.shared
        assert not layer.early


def test_with_half_of_the_processes_gone_nothing_is_delivered_rather_than_wrongly() -> None:
    outcome = run(MAJORITY, 4, crashes=[(0.5, 2), (0.5, 3)], detection=3.0)
    assert outcome.delivered == [[], [], [], []]
