"""Any order of casts, arrivals, losses, repetitions, crashes: what xAMP promises is kept."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.core.message import origin_of
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.protocols.parts.tr_w_resp import message_of

from ..explorer.variant_parts import loaded_anew, plan_of
from .member_schedules import Casts, Ended, Faults, random_casts, run

LOSSY = Faults(losses=3, duplicates=3)
CRASHING = Faults(losses=2, duplicates=2, crashes=2)

RELIABLE = ("integrity", "validity", "agreement")

PROMISES = {
    "xamp-best-effort": ("integrity", "validity"),
    "xamp-at-least": RELIABLE,
    "xamp-reliable": RELIABLE,
    "xamp-causal": (*RELIABLE, "causal order"),
    "xamp-atomic": (*RELIABLE, "acyclic order"),
}

every_stack = pytest.mark.parametrize("stack", PROMISES)


def schedule(stack: str | StackPlan, seed: int, faults: Faults) -> Ended:
    random = Random(seed)
    casts = random_casts(random, random.randint(2, 4), random.randint(1, 4))
    return run(stack, casts, random, fifo=False, faults=faults)


@st.composite
def systems(draw: st.DrawFn) -> Casts:
    processes = draw(st.integers(2, 4))
    members = st.integers(0, processes - 1)
    sets = st.sets(members, min_size=1).map(sorted).map(tuple)
    return Casts(processes, tuple(draw(st.lists(st.tuples(members, sets), max_size=4))))


@every_stack
@settings(max_examples=60, deadline=None)
@given(casts=systems(), seed=st.integers(0, 1000))
def test_no_schedule_with_losses_breaks_a_promise(stack: str, casts: Casts, seed: int) -> None:
    run(stack, casts, Random(seed), fifo=False, faults=LOSSY).refute(*PROMISES[stack])


@every_stack
def test_150_random_schedules_with_crashes(stack: str) -> None:
    for seed in range(150):
        schedule(stack, seed, CRASHING).refute(*PROMISES[stack])


def test_two_phase_accept_as_published_breaks_the_order_without_any_fault() -> None:
    broken = Counter(
        promise
        for seed in range(100)
        for promise in schedule("xamp-atomic-published", seed, Faults()).broken()
    )
    assert broken["acyclic order"] > 5
    assert broken["integrity"] == broken["validity"] == 0


# The schedules bite.


def where_only_the_sender_repeats() -> StackPlan:
    """atLeast without its idea: a receiver is not responsible for the others."""
    module = loaded_anew("xamp_reliable")
    repeating = module.XampReliable.on_timer

    def on_timer(self: Any, name: str) -> None:
        if origin_of(message_of(name)) == self.process:
            repeating(self, name)

    module.XampReliable.on_timer = on_timer
    return plan_of(module.XampReliable)


def test_without_repetition_by_receivers_a_crash_of_the_sender_breaks_agreement() -> None:
    plan = where_only_the_sender_repeats()
    broken = {p for seed in range(150) for p in schedule(plan, seed, CRASHING).broken()}
    assert "agreement" in broken


def where_the_monitor_accepts_whatever_it_finds() -> StackPlan:
    """It accepts what somebody holds, though not all do, and cannot send it to them."""
    module = loaded_anew("xamp_atomic")
    concluding = module.XampAtomic.conclude_if_complete

    def conclude_if_complete(self: Any, m: int) -> None:
        inquest = self.inquests[m]
        inquest.states = tuple(s for s in inquest.states if s[0] == module.NOT_ACCEPTED)
        concluding(self, m)

    module.XampAtomic.conclude_if_complete = conclude_if_complete
    return plan_of(module.XampAtomic)


def test_a_monitor_that_accepts_what_not_all_have_breaks_agreement() -> None:
    plan = where_the_monitor_accepts_whatever_it_finds()
    broken: set[str] = set()
    for seed in range(150):
        try:
            broken.update(schedule(plan, seed, CRASHING).broken())
        except ValueError:  # nobody had it, so there is no highest place
            continue
    assert "agreement" in broken
