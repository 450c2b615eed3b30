"""Paxos while a replica is down: what it lacks is set aside, and told piece by piece."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.protocols.paxos import CUT
from flexgroup.testing.replica_schedules import Load, replica_schedule
from flexgroup.worlds.bench import Bench

from ..explorer.variants_restarted import nothing_taken_out
from ..explorer.variants_set_aside import VARIANTS, what_an_earlier_leader_says_that_hides_the_rest
from .restart_schedules import Failures, restart_schedule

SHORT = "leader paxos/short"

SIZES = ((3,), (3, 3), (5,))


def broken(plan: StackPlan, seed: int) -> str:
    load = Load(
        multicasts=4 + seed % 9,
        crashes=1 + seed // 2 % 5,
        suspicions=seed // 3 % 4,
        down=(1, 1, 3)[seed // 7 % 3],
        depth=(0, 3)[seed % 2],
        one_group=plan.top.layer.__name__ == "Paxos",
    )
    return replica_schedule(plan, SIZES[seed // 2 % len(SIZES)], load, seed).broken


def outcomes(plan: StackPlan, seeds: range) -> Counter[str]:
    return Counter([broken(plan, seed) for seed in seeds])


def test_in_500_schedules() -> None:
    assert outcomes(parse_stack(SHORT), range(1000, 1500)) == {"": 500}


@pytest.mark.large
def test_in_5000_schedules() -> None:
    assert outcomes(parse_stack(SHORT), range(1000, 6000)) == {"": 5000}


LAYERS = ("skeen-cft", "df-cft", "dcc-cft", "ft-abcast")


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("name", LAYERS)
def test_below_other_layers_in_100_schedules(name: str, every: int) -> None:
    """They save their states after so many entries, and slots are set aside behind that."""
    assert outcomes(nothing_taken_out(name, every), range(1000, 1100)) == {"": 100}


@pytest.mark.large
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("name", LAYERS)
def test_below_other_layers_in_1000_schedules(name: str, every: int) -> None:
    assert outcomes(nothing_taken_out(name, every), range(1000, 2000)) == {"": 1000}


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.__name__)
def test_the_same_schedules_catch_variants(variant: Callable[[], StackPlan]) -> None:
    plan = variant()
    assert any(broken(plan, seed) for seed in range(100))


def test_what_an_earlier_leader_says_of_the_rest_hides_none_of_it() -> None:
    """One of some thousands of schedules, over channels that reorder, shows why that matters."""

    def outcome(plan: StackPlan) -> str:
        return restart_schedule(plan, 4, 6, Failures(down=1, crashes=3, suspicions=3), 3310)

    assert outcome(parse_stack(SHORT)) == ""
    assert outcome(what_an_earlier_leader_says_that_hides_the_rest()) == "agreement"


# What is in memory, and what is not.


def deliver_all(bench: Bench) -> None:
    while bench.channels:
        bench.deliver(*next(iter(bench.channels)))


def at_hand(bench: Bench, process: int) -> int:
    """How many slots a replica has in memory where stable storage is on a disk."""
    log: Any = bench.hosts[process].stack.layers[1]
    return max(len(log.ledger.votes), len(bench.hosts[process].stored[1].log))


def test_a_replica_that_is_down_costs_the_others_no_memory() -> None:
    plan = parse_stack("leader paxos")
    bench = Bench(plan, 3, replicas=replicas_of_sizes([3]))
    bench.crash(2)
    for number in range(5 * CUT):
        bench.cast(number % 2, (0, 1, 2))
        deliver_all(bench)
        assert max(at_hand(bench, 0), at_hand(bench, 1)) <= 2 * CUT
    bench.lose(2)
    bench.recover(2)
    deliver_all(bench)
    assert bench.delivered[2] == bench.delivered[0]
    assert len(bench.delivered[2]) == 5 * CUT
    assert at_hand(bench, 2) <= 2 * CUT
    for number in range(CUT):
        bench.cast(number % 3, (0, 1, 2))
        deliver_all(bench)
    assert [bench.hosts[p].stored[1].archive for p in range(3)] == [{}, {}, {}]


@pytest.mark.parametrize("name", LAYERS)
def test_nor_below_other_layers(name: str) -> None:
    bench = Bench(nothing_taken_out(name, 8), 4, replicas=replicas_of_sizes([3, 1]))
    bench.crash(2)
    for number in range(100):
        bench.cast(number % 2, (0, 1, 2, 3))
        deliver_all(bench)
        assert max(at_hand(bench, p) for p in (0, 1, 3)) < 20
    bench.lose(2)
    bench.recover(2)
    deliver_all(bench)
    assert bench.delivered[2] == bench.delivered[0]
    assert len(bench.delivered[2]) == 100


def test_nobody_who_lacks_what_others_have_set_aside_makes_them_wait() -> None:
    """Process 0 is named as the leader before it has learnt anything; 1 or 2 leads on."""
    bench = Bench(parse_stack("leader paxos"), 3, replicas=replicas_of_sizes([3]))
    bench.crash(0)
    bench.suspect(1, 0)
    bench.suspect(2, 0)
    for number in range(2 * CUT):
        bench.cast(1 + number % 2, (0, 1, 2))
        deliver_all(bench)
    bench.lose(0)
    bench.recover(0)
    bench.crash(1)
    for p in (0, 2):
        bench.suspect(p, 1)
    bench.trust(2, 0)
    m = bench.cast(2, (0, 1, 2))
    while m not in bench.delivered[2]:
        bench.deliver(*next(iter(bench.channels)))
    assert len(bench.delivered[0]) <= CUT
    deliver_all(bench)
    assert bench.delivered[0] == bench.delivered[2]
