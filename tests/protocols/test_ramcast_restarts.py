"""RamCast over memory that outlives its process: replicas, whole groups and all processes that
start again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.core.errors import PeerError
from flexgroup.core.message import stamp
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.protocols.parts.proposals import CUT
from flexgroup.protocols.parts.ramcast_packets import Delivered, Restarted
from flexgroup.protocols.ramcast import RamCast
from flexgroup.testing.replica_schedules import Load, replica_schedule
from flexgroup.trace.collector import Collector
from flexgroup.worlds.bench import Bench
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, run_scenario

from ..explorer.variants_primcast_restarts import Restarting
from ..explorer.variants_ramcast import RAMCAST
from ..explorer.variants_ramcast_restarts import (
    RESTARTED,
    memory_that_is_gone_with_its_process,
    memory_that_permits_whom_it_did_before,
    ramcast_that_cuts_its_log_all_the_time,
    ramcast_that_does_not_write_its_clock,
)

SYSTEMS = [(3,), (3, 1), (3, 3), (2, 1), (1, 1, 1), (5, 3), (3, 2, 1), (1,), (3, 3, 3)]


def outcomes(plan: StackPlan, seeds: range) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in seeds:
        load = Load(2 + seed % 6, seed // 2 % 6, seed // 3 % 5, (1, 1, 2, 9)[seed // 5 % 4])
        found[replica_schedule(plan, SYSTEMS[seed % len(SYSTEMS)], load, seed).broken] += 1
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
    assert replica_schedule(RAMCAST, tuple(sizes), load, seed).broken == ""


def test_in_500_schedules() -> None:
    assert outcomes(RAMCAST, range(1000, 1500)) == {"": 500}


def test_in_200_schedules_in_which_who_starts_again_is_met_late() -> None:
    load = Load(6, 4, 4, 2, meets_late=True)
    found = Counter([replica_schedule(RAMCAST, (3, 3), load, seed).broken for seed in range(200)])
    assert found == {"": 200}


def test_a_completion_that_was_lost_with_its_sender_is_made_up_for() -> None:
    """Both followers crash when proposals have landed, and before the leader hears of that: it
    learns from their acknowledgements, for what landed last as well."""
    load = Load(6, 4, 4, 1, depth=0, meets_late=True)
    assert replica_schedule(RAMCAST, (3,), load, 168).broken == ""


def test_in_200_schedules_with_a_log_that_is_cut_off_all_the_time() -> None:
    assert outcomes(ramcast_that_cuts_its_log_all_the_time(), range(200)) == {"": 200}


@pytest.mark.large
def test_in_5000_schedules() -> None:
    assert outcomes(RAMCAST, range(1000, 6000)) == {"": 5000}


@pytest.mark.parametrize("case", RESTARTED, ids=lambda case: case.variant.__name__)
def test_schedules_catch_what_is_not_kept_or_not_told(case: Restarting) -> None:
    plan = case.variant()
    assert any(replica_schedule(plan, case.sizes, case.load, seed).broken for seed in case.seeds)


# What the memory holds.


def bench_of(*sizes: int, plan: StackPlan = RAMCAST) -> Bench:
    return Bench(plan, sum(sizes), replicas=replicas_of_sizes(sizes))


def settle(bench: Bench) -> None:
    while bench.channels:
        bench.deliver(*next(iter(bench.channels)))


def layer(bench: Bench, process: int) -> RamCast:
    top = bench.hosts[process].stack.layers[-1]
    assert isinstance(top, RamCast)
    return top


def test_the_log_is_cut_off_behind_what_all_have_delivered() -> None:
    bench = bench_of(3, 1)
    for _ in range(4 * CUT):
        bench.cast(0, (0, 1, 2, 3))
        settle(bench)
    for process in range(4):
        stored = bench.hosts[process].stored[-1]
        assert len(stored.log) <= 3 * CUT, process
        assert stored.first > CUT, process
        assert len(layer(bench, process).known.done) <= 3 * CUT, process


def test_the_leader_hears_how_far_its_followers_have_delivered() -> None:
    """Of messages to one group, they acknowledge nothing to it."""
    bench = bench_of(3)
    for _ in range(4 * CUT):
        bench.cast(0, (0, 1, 2))
        settle(bench)
    assert len(layer(bench, 0).T.kept) <= 3 * CUT


def test_the_log_is_kept_for_who_is_down() -> None:
    bench = bench_of(3)
    bench.crash(2)
    for _ in range(3 * CUT):
        bench.cast(0, (0, 1, 2))
        settle(bench)
    assert len(layer(bench, 1).T.kept) == 3 * CUT
    bench.lose(2)
    bench.recover(2)
    settle(bench)
    assert bench.delivered[2] == bench.delivered[0]
    assert len(bench.delivered[2]) == 3 * CUT


@pytest.mark.parametrize("count", [5, 3 * CUT + 5])
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
    bench = bench_of(3, plan=parse_stack("leader protected-memory ramcast fifo"))
    for _ in range(3):
        bench.cast(0, (0, 1, 2))
        settle(bench)
    bench.crash(2)
    bench.recover(2)
    settle(bench)
    assert bench.delivered[2][3:] == bench.delivered[0]


# What is told.


def test_who_starts_again_as_the_leader_begins_a_ballot() -> None:
    bench = bench_of(3)
    bench.crash(0)
    bench.recover(0)
    settle(bench)
    assert {layer(bench, process).synced for process in range(3)} == {stamp(1, 0)}


def test_a_completion_of_what_was_written_before_the_crash_is_nothing_to_who_starts_again() -> None:
    bench = bench_of(3)
    bench.cast(0, (0, 1, 2))
    bench.deliver(0, 1)
    bench.deliver(0, 1)
    bench.crash(0)
    bench.recover(0)
    settle(bench)
    assert [len(order) for order in bench.delivered] == [1, 1, 1]


def test_what_no_correct_peer_sends_is_refused() -> None:
    bench = bench_of(3, 1)
    for packet in (Restarted(), Delivered(1)):
        with pytest.raises(PeerError):
            layer(bench, 2).on_packet(4, packet)


def test_who_starts_again_in_the_simulator_delivers_what_the_others_do() -> None:
    """Also where a completion has to wait until what has landed is durable."""
    faults = Faults(
        crashes=("0@50ms", "1@120ms", "4@130ms"),
        recoveries=("0@90ms", "1@170ms", "4@180ms"),
        detection="5ms",
    )
    collector = Collector()
    scenario = Scenario(
        "leader protected-memory ramcast", 6, 4, "random:2", "lan:sync=1ms", 0.3, drain=1.0,
        rate=100.0, faults=faults, groups="2x3",
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


def lose_what_was_sent(bench: Bench, process: int) -> None:
    for source, target in list(bench.channels):
        if source == process:
            del bench.channels[source, target]


def is_one_order(bench: Bench) -> bool:
    return is_ordered(bench, tuple(range(bench.size)))


def is_ordered(bench: Bench, processes: tuple[int, ...]) -> bool:
    """At the end, after everybody has come back."""
    for process in sorted(bench.crashed):
        bench.lose(process)
        bench.recover(process)
    for process in range(bench.size):
        for other in range(bench.size):
            if process != other:
                bench.trust(process, other)
    settle(bench)
    return len({tuple([m.id for m in bench.delivered[p]]) for p in processes}) == 1


def a_write_that_was_not_looked_at(plan: StackPlan) -> bool:
    """What 0 proposed lands at 2, which crashes before it does anything about it. If 0 hears that
    it has landed, it delivers a, and crashes; then 1 and 2 go on with b."""
    bench = bench_of(3, plan=plan)
    bench.cast(0, (0, 1, 2))
    bench.deliver(0, 2)
    bench.crash_after(2, 1, partial(bench.deliver, 0, 2))
    if (2, 0) in bench.channels:
        bench.deliver(2, 0)
    bench.crash(0)
    lose_what_was_sent(bench, 0)
    bench.recover(2)
    bench.cast(3, (0, 1, 2))
    bench.suspect(1, 0)
    bench.suspect(2, 0)
    while inside := [channel for channel in bench.channels if 0 not in channel]:
        bench.deliver(*inside[0])
    return is_one_order(bench)


def a_write_behind_a_state_that_was_lost(plan: StackPlan) -> bool:
    """2 has granted the ballot of 1, and starts again before its state comes, which is lost. What
    1 proposes in that ballot must not land there before it has asked again."""
    bench = bench_of(3, plan=plan)
    bench.suspect(1, 0)
    bench.deliver(1, 2)
    bench.deliver(2, 1)
    bench.crash(2)
    bench.lose(2)
    bench.recover(2)
    bench.cast(4, (0, 1, 2))
    bench.deliver(4, 1)
    bench.deliver(1, 2)
    # Nothing but the completion.
    while len(bench.channels[2, 1]) > 1:
        bench.remove(2, 1, 0)
    bench.deliver(2, 1)
    bench.crash(1)
    lose_what_was_sent(bench, 1)
    bench.cast(3, (0, 1, 2))
    bench.lose(0)
    bench.suspect(0, 1)
    bench.suspect(2, 1)
    while inside := [channel for channel in bench.channels if not {1, 4} & {*channel}]:
        bench.deliver(*inside[0])
    return is_one_order(bench)


def a_clock_that_another_group_had_moved(plan: StackPlan) -> bool:
    """0 alone has delivered a, with a timestamp far above that of its group, and stays down."""
    bench = bench_of(3, 1, plan=plan)
    for _ in range(4):
        bench.cast(3, (3,))
        settle(bench)
    bench.cast(5, (0, 1, 2, 3))
    for channel in ("5->0", "5->3", "0->1", "3->1", "3->0", "0->3", "1->0", "1->0", "3->0"):
        bench.deliver(*map(int, channel.split("->")))
    assert len(bench.delivered[0]) == 1
    for process in (0, 1, 2):
        bench.crash(process)
        lose_what_was_sent(bench, process)
        bench.lose(process)
    for process in (1, 2):
        bench.recover(process)
        bench.suspect(process, 0)
    bench.cast(4, (0, 1, 2))
    while inside := [channel for channel in bench.channels if 0 not in channel]:
        bench.deliver(*inside[0])
    return is_ordered(bench, (0, 1, 2))


@pytest.mark.parametrize(
    ("schedule", "variant"),
    [
        (a_clock_that_another_group_had_moved, ramcast_that_does_not_write_its_clock),
        (a_write_that_was_not_looked_at, memory_that_is_gone_with_its_process),
        (a_write_behind_a_state_that_was_lost, memory_that_permits_whom_it_did_before),
    ],
)
def test_a_long_schedule_shows_what_a_variant_lacks(
    schedule: Callable[[StackPlan], bool], variant: Callable[[], StackPlan]
) -> None:
    assert schedule(RAMCAST)
    assert not schedule(variant())
