"""Random schedules of White-Box: fewer than half of each group crash, and detectors err."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.core.errors import PeerError
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.worlds.bench import Bench

from ..explorer.variants_white_box import (
    HARMLESS,
    SCHEDULED,
    Scheduled,
    white_box_that_counts_answers_to_an_earlier_ballot,
    white_box_that_leads_before_its_state_is_stored,
    white_box_whose_followers_keep_their_clocks,
)
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


def test_in_2000_schedules() -> None:
    assert outcomes(range(1000, 3000)) == {"": 2000}


@pytest.mark.large
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


# Schedules that are too long to be met by chance.


def deliver_all(bench: Bench, *channels: str) -> None:
    """Let everything that is in these channels arrive; what follows from it waits."""
    for channel in channels:
        source, target = map(int, channel.split("->"))
        for _ in range(len(bench.channels.get((source, target), []))):
            bench.deliver(source, target)


def settle(bench: Bench) -> str:
    try:
        while bench.channels:
            bench.deliver(*next(iter(bench.channels)))
    except PeerError as error:
        return f"conduct: {error}"
    return broken_promise(bench)


def a_leader_whose_state_nobody_stored(plan: StackPlan) -> str:
    """At 0, b is committed and waits for a, which only 2 has accepted.

    Process 1 leads without having heard of a, with the answer of 0, and is deposed by 0 with 2.
    """
    bench = Bench(plan, 4, replicas=replicas_of_sizes([3, 1]))
    bench.cast(0, (0, 1, 2, 3))
    bench.cast(0, (0, 1, 2))
    deliver_all(bench, "0->3", "3->2", "0->2", "2->0")
    bench.suspect(1, 0)
    deliver_all(bench, "1->0", "0->1")
    bench.suspect(0, 1)
    deliver_all(bench, "0->2", "2->0", "0->2", "2->0", "0->2")
    bench.trust(1, 0)
    bench.trust(0, 1)
    return settle(bench)


def a_timestamp_that_only_the_crashed_knew(plan: StackPlan) -> str:
    """Process 1 takes over what 0 proposed for a, and both crash; 2 knows the timestamp only."""
    group = (0, 1, 2, 3, 4)
    bench = Bench(plan, 6, replicas=replicas_of_sizes([5, 1]))
    bench.cast(0, group)
    bench.cast(0, (*group, 5))
    deliver_all(bench, "0->5", "5->1", "0->1")
    bench.suspect(1, 0)
    deliver_all(bench, "1->2", "1->3", "2->1", "3->1", "1->2", "1->3", "1->4")
    bench.crash(0)
    bench.crash(1)
    for process in (2, 3, 4):
        bench.suspect(process, 0)
        bench.suspect(process, 1)
    deliver_all(bench, "2->3", "2->4", "3->2", "4->2", "2->3", "2->4", "3->2", "4->2")
    bench.cast(2, group)
    return settle(bench)


def an_answer_to_a_ballot_that_was_left(plan: StackPlan) -> str:
    """Process 1 asks 0 for its state, and again, in a higher ballot, when 2 leads with 0 meanwhile.

    The first answer does not have what is delivered in the ballot of 2.
    """
    group = (0, 1, 2)
    bench = Bench(plan, 3, replicas=replicas_of_sizes([3]))
    bench.suspect(1, 0)
    deliver_all(bench, "1->0")
    for suspected in (0, 1):
        bench.suspect(2, suspected)
    bench.suspect(1, 2)
    deliver_all(bench, "2->1", "0->1", "2->0", "0->2", "2->0", "0->2")
    bench.cast(2, group)
    deliver_all(bench, "2->0", "0->2")
    bench.cast(1, group)
    deliver_all(bench, "1->0", "0->1", "1->0", "0->1")
    for suspicious, suspected in ((1, 0), (1, 2), (2, 0), (2, 1)):
        bench.trust(suspicious, suspected)
    return settle(bench)


DIRECTED = [
    (an_answer_to_a_ballot_that_was_left, white_box_that_counts_answers_to_an_earlier_ballot),
    (a_leader_whose_state_nobody_stored, white_box_that_leads_before_its_state_is_stored),
    (a_timestamp_that_only_the_crashed_knew, white_box_whose_followers_keep_their_clocks),
]


@pytest.mark.parametrize(("schedule", "variant"), DIRECTED)
def test_a_schedule_made_for_it_catches_a_variant(
    schedule: Callable[[StackPlan], str], variant: Callable[[], StackPlan]
) -> None:
    assert schedule(parse_stack(WHITE_BOX)) == ""
    assert schedule(variant()) != ""
