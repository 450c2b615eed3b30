"""White-Box with stable storage: replicas, whole groups and all processes that start again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.core.errors import PeerError
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.protocols.parts.white_box_messages import CUT
from flexgroup.protocols.parts.white_box_packets import Deliver, Restarted
from flexgroup.protocols.white_box import FOLLOWER, RECOVERING, WhiteBox
from flexgroup.testing.replica_schedules import Load, replica_schedule
from flexgroup.trace.collector import Collector
from flexgroup.worlds.bench import Bench
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, run_scenario

from ..explorer.variants_white_box_restarts import (
    RESTARTED,
    Restarting,
    white_box_that_does_not_store_its_clock,
    white_box_that_does_not_write_what_falls_back,
    white_box_that_falls_back_when_its_state_is_told_again,
)

WHITE_BOX = parse_stack("leader white-box")

SYSTEMS = [(3,), (3, 1), (3, 3), (2, 1), (1, 1, 1), (5, 3), (3, 2, 1), (1,), (3, 3, 3)]


def outcomes(seeds: range) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in seeds:
        load = Load(2 + seed % 6, seed // 2 % 6, seed // 3 % 5, (1, 1, 2, 9)[seed // 5 % 4])
        found[replica_schedule(WHITE_BOX, SYSTEMS[seed % len(SYSTEMS)], load, seed).broken] += 1
    return found


@settings(max_examples=100, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    multicasts=st.integers(1, 8),
    crashes=st.integers(1, 6),
    suspicions=st.integers(0, 4),
    down=st.integers(1, 5),
    seed=st.integers(0, 1 << 32),
)
def test_every_schedule_keeps_what_is_promised(
    sizes: list[int], multicasts: int, crashes: int, suspicions: int, down: int, seed: int
) -> None:
    load = Load(multicasts, crashes, suspicions, down)
    assert replica_schedule(WHITE_BOX, tuple(sizes), load, seed).broken == ""


def test_in_2000_schedules() -> None:
    assert outcomes(range(1000, 3000)) == {"": 2000}


@pytest.mark.large
def test_in_20000_schedules() -> None:
    assert outcomes(range(1000, 21_000)) == {"": 20_000}


@pytest.mark.parametrize("case", RESTARTED, ids=lambda case: case.variant.__name__)
def test_schedules_catch_what_is_not_stored_or_not_told(case: Restarting) -> None:
    plan = case.variant()
    assert any(replica_schedule(plan, case.sizes, case.load, seed).broken for seed in case.seeds)


def test_the_same_schedules_do_white_box_itself_no_harm() -> None:
    for sizes, load, seeds in {(case.sizes, case.load, case.seeds) for case in RESTARTED}:
        for seed in seeds:
            assert replica_schedule(WHITE_BOX, sizes, load, seed).broken == ""


# What is stored.


def bench_of(*sizes: int) -> Bench:
    return Bench(WHITE_BOX, sum(sizes), replicas=replicas_of_sizes(sizes))


def settle(bench: Bench) -> None:
    while bench.channels:
        bench.deliver(*next(iter(bench.channels)))


def layer(bench: Bench, process: int) -> WhiteBox:
    top = bench.hosts[process].stack.layers[-1]
    assert isinstance(top, WhiteBox)
    return top


def test_the_log_is_cut_off_behind_what_all_have_delivered() -> None:
    bench = bench_of(3, 1)
    for _ in range(3 * CUT):
        bench.cast(0, (0, 1, 2, 3))
        settle(bench)
    for process in range(4):
        log = bench.hosts[process].stored[-1].log
        assert len(log) <= CUT + 4, process
        assert bench.hosts[process].stored[-1].first > CUT, process


def test_the_log_is_kept_for_who_is_down() -> None:
    bench = bench_of(3)
    bench.crash(2)
    for _ in range(2 * CUT):
        bench.cast(0, (0, 1, 2))
        settle(bench)
    assert len(bench.hosts[1].stored[-1].log) == 2 * CUT
    bench.lose(2)
    bench.recover(2)
    settle(bench)
    assert len(bench.delivered[2]) == 2 * CUT
    bench.cast(0, (0, 1, 2))
    settle(bench)
    bench.cast(0, (0, 1, 2))
    settle(bench)
    assert len(bench.hosts[1].stored[-1].log) < CUT


@pytest.mark.parametrize("count", [5, CUT, CUT + 5])
def test_all_start_again_and_go_on_behind_the_last_message(count: int) -> None:
    bench = bench_of(3, 3)
    everyone = tuple(range(6))
    for _ in range(count):
        bench.cast(6, everyone)
        settle(bench)
    for process in everyone:
        bench.crash(process)
    for process in everyone:
        bench.lose(process)
        bench.recover(process)
    settle(bench)
    bench.cast(1, everyone)
    settle(bench)
    assert all(len(order) == count + 1 for order in bench.delivered)
    assert len({tuple(order) for order in bench.delivered}) == 1


def test_below_another_layer_everything_is_delivered_again() -> None:
    bench = Bench(parse_stack("leader white-box fifo"), 3, replicas=replicas_of_sizes([3]))
    for _ in range(3):
        bench.cast(0, (0, 1, 2))
        settle(bench)
    below = bench.hosts[2].stack.layers[1]
    assert isinstance(below, WhiteBox)
    assert len(below.messages.known) == 3
    bench.crash(2)
    bench.recover(2)
    settle(bench)
    assert bench.delivered[2][3:] == bench.delivered[0]


# What is told.


def test_who_starts_again_delivers_nothing_before_it_has_the_state_of_its_leader() -> None:
    """A DELIVER may come before those that were lost."""
    bench = bench_of(3)
    bench.cast(0, (0, 1, 2))
    bench.deliver(0, 1)
    bench.deliver(1, 0)
    bench.crash(2)
    bench.lose(2)
    bench.recover(2)
    restarted = layer(bench, 2)
    assert restarted.status == RECOVERING
    bench.cast(0, (0, 1, 2))
    bench.deliver(0, 1)
    bench.deliver(0, 1)
    bench.deliver(1, 0)
    while (0, 2) in bench.channels:
        bench.deliver(0, 2)
    assert bench.delivered[2] == []
    settle(bench)
    assert restarted.status == FOLLOWER
    assert bench.delivered[2] == bench.delivered[0]
    assert len(bench.delivered[0]) == 2


def test_what_no_correct_peer_sends_is_refused() -> None:
    bench = bench_of(3, 1)
    with pytest.raises(PeerError):
        layer(bench, 2).on_packet(4, Restarted())
    with pytest.raises(PeerError):
        layer(bench, 2).on_packet(0, Deliver(7, 0, 1 << 20, 1 << 20, 0))


def test_who_starts_again_in_the_simulator_delivers_what_the_others_do() -> None:
    faults = Faults(
        crashes=("0@50ms", "1@120ms", "4@130ms"),
        recoveries=("0@90ms", "1@170ms", "4@180ms"),
        detection="5ms",
    )
    collector = Collector()
    scenario = Scenario(
        "leader white-box", 6, 4, "random:2", "lan:sync=1ms", 0.3, drain=1.0, rate=100.0,
        faults=faults, groups="2x3",
    )  # fmt: skip
    run_scenario(scenario, collector)
    rows = collector.history("test", 6, complete=True).deliveries
    orders: list[list[int]] = [[] for _ in range(6)]
    for process, m in zip(rows.process.tolist(), rows.message.tolist(), strict=True):
        orders[process].append(m)
    assert orders[0] == orders[1] == orders[2]
    assert orders[3] == orders[4] == orders[5]
    assert all(len(order) == len(set(order)) > 40 for order in orders)


# Schedules that are too long to be met by chance.


def arrive(bench: Bench, *channels: str) -> None:
    """Let the oldest packet of each of these channels arrive."""
    for channel in channels:
        source, target = map(int, channel.split("->"))
        bench.deliver(source, target)


def settle_among(bench: Bench, *processes: int) -> None:
    while inside := [channel for channel in bench.channels if {*channel} <= {*processes}]:
        bench.deliver(*inside[0])


def start_again(bench: Bench, *processes: int) -> None:
    for process in processes:
        bench.crash(process)
        bench.lose(process)
        for source, target in list(bench.channels):
            if source == process:
                del bench.channels[source, target]
    for process in processes:
        bench.recover(process)


def is_one_order(bench: Bench, processes: tuple[int, ...]) -> bool:
    return len({tuple([m.id for m in bench.delivered[p]]) for p in processes}) == 1


def a_clock_that_another_group_had_moved(plan: StackPlan) -> bool:
    """The global timestamp of the message to both is far above what group 0 proposed."""
    bench = Bench(plan, 4, replicas=replicas_of_sizes([3, 1]))
    for _ in range(4):
        bench.cast(3, (3,))
    bench.cast(0, (0, 1, 2, 3))
    settle(bench)
    start_again(bench, 0, 1, 2)
    settle_among(bench, 0, 1, 2)
    bench.cast(0, (0, 1, 2))
    settle(bench)
    return is_one_order(bench, (0, 1, 2))


def accepted_before_the_leader_had(plan: StackPlan) -> bool:
    """Group 1 delivers a with what 1 and 2 accepted; they start again, and 0, which had proposed a
    and not accepted it, tells them its state and crashes."""
    everyone = (0, 1, 2, 3)
    bench = Bench(plan, 4, replicas=replicas_of_sizes([3, 1]))
    bench.cast(5, everyone)
    arrive(bench, "5->0", "5->3", "0->1", "3->1", "0->2", "3->2", "0->3", "1->3", "2->3")
    assert len(bench.delivered[3]) == 1
    start_again(bench, 1, 2)
    bench.cast(4, everyone)
    arrive(bench, "4->1", "4->2", "1->0", "2->0", "0->1", "0->1", "0->2", "0->2")
    bench.crash(0)
    for channel in ((0, 1), (0, 2)):
        del bench.channels[channel]
    bench.suspect(1, 0)
    bench.suspect(2, 0)
    settle_among(bench, 1, 2)
    settle(bench)
    return is_one_order(bench, (1, 2, 3))


def accepted_in_a_ballot_that_is_over(plan: StackPlan) -> bool:
    """Process 2 alone accepts what 0 proposed, falls back with the state of 1, and starts again. It
    must not tell 0, which leads then, that it accepted that in the ballot of 1."""
    bench = Bench(plan, 4, replicas=replicas_of_sizes([3, 1]))
    bench.cast(5, (0, 1, 2, 3))
    arrive(bench, "5->0", "5->3", "0->2", "3->2", "5->1")
    bench.suspect(1, 0)
    arrive(bench, "0->1", "1->0", "0->1", "1->0", "0->1", "3->0", "3->1", "1->3", "1->0", "0->1")
    settle_among(bench, 1, 3)
    assert len(bench.delivered[1]) == 1
    arrive(bench, "1->2", "1->2")
    start_again(bench, 2)
    bench.trust(1, 0)
    bench.suspect(0, 1)
    settle_among(bench, 0, 2)
    bench.trust(0, 1)
    try:
        settle(bench)
    except PeerError:
        return False
    return is_one_order(bench, (0, 1, 2, 3))


@pytest.mark.parametrize(
    ("schedule", "variant"),
    [
        (accepted_in_a_ballot_that_is_over, white_box_that_does_not_write_what_falls_back),
        (a_clock_that_another_group_had_moved, white_box_that_does_not_store_its_clock),
        (
            accepted_before_the_leader_had,
            white_box_that_falls_back_when_its_state_is_told_again,
        ),
    ],
)
def test_a_long_schedule_shows_what_a_variant_lacks(
    schedule: Callable[[StackPlan], bool], variant: Callable[[], StackPlan]
) -> None:
    assert schedule(WHITE_BOX)
    assert not schedule(variant())
