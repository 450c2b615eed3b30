"""Crashes before, during and after broadcasts, of sources and of others, in random schedules."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from flexgroup.protocols.catalogue import StackPlan

from ..explorer.variant_parts import loaded_anew, plan_of
from .crash_schedules import Run, crash_schedule

SIZES = (2, 3, 4, 5, 6, 8)
SURVIVORS = ["vcube-reliable", "vcube-atomic", "all2all-atomic"]


def schedules(stack: str, seeds: range, crashes: int, fifo: bool = False) -> list[Run]:
    return [
        crash_schedule(
            stack,
            SIZES[seed % len(SIZES)],
            broadcasts=2 + seed % 3,
            crashes=min(crashes, SIZES[seed % len(SIZES)] - 1),
            seed=seed,
            fifo=fifo,
            ordered="atomic" in stack,
        )
        for seed in seeds
    ]


@pytest.mark.parametrize("stack", SURVIVORS)
@pytest.mark.parametrize("crashes", [1, 2, 3])
def test_who_is_up_delivers_the_same_in_the_same_order(stack: str, crashes: int) -> None:
    for run in schedules(stack, range(400), crashes):
        assert not run.broken, f"{run.broken}\n{run.script}"


@pytest.mark.large
@pytest.mark.parametrize("stack", SURVIVORS)
def test_5000_schedules(stack: str) -> None:
    for run in schedules(stack, range(1000, 6000), crashes=2):
        assert not run.broken, f"{run.broken}\n{run.script}"


def test_best_effort_breaks_agreement_if_the_source_crashes_and_nothing_else() -> None:
    broken = Counter(run.broken for run in schedules("vcube-best-effort", range(400), 2))
    assert set(broken) == {"", "agreement"}


def test_the_published_algorithm_is_caught() -> None:
    """By such schedules, too: in the order, and by delivering twice."""
    runs = [
        crash_schedule("vcube-atomic-published", 4, broadcasts=4, crashes=2, seed=seed)
        for seed in range(300)
    ]
    assert {"order", "integrity"} <= {run.broken for run in runs}


def with_line_60_as_printed() -> StackPlan:
    """What came from a parent that crashed is not sent again, if the child crashes as well."""
    module = loaded_anew("vcube_atomic")

    as_corrected = module.VCubeAtomic.replace

    def replace(self: Any, s: int, forwarded: Any) -> None:
        if forwarded.source not in self.agreement.crashed:
            as_corrected(self, s, forwarded)
        elif forwarded.clusters >> s & 1:
            self.confirm(s, forwarded.T, forwarded)

    module.VCubeAtomic.replace = replace
    return plan_of(module.VCubeAtomic)


def test_line_60_as_printed_leaves_some_waiting() -> None:
    plan = with_line_60_as_printed()
    runs = [crash_schedule(plan, 8, broadcasts=2, crashes=3, seed=seed) for seed in range(60)]
    assert "agreement" in {run.broken for run in runs}


def test_crashes_make_a_difference() -> None:
    """Against vacuous success: messages of crashed processes are lost in some schedules, are
    delivered in others, and survivors deliver several."""
    lost = kept = 0
    for run in schedules("vcube-atomic", range(200), 1):
        crashed = {command.split()[1] for command in run.commands if command.startswith("crash")}
        cast = [c.split()[1] for c in run.commands if c.startswith("cast")]
        of_crashed = sum(origin in crashed for origin in cast)
        delivered = max(len(order) for order in run.delivered)
        lost += delivered < len(cast)
        kept += of_crashed > 0 and delivered == len(cast)
    assert lost > 5
    assert kept > 5
