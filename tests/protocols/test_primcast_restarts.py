"""PrimCast with stable storage: replicas, whole groups and all processes that start again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.core.errors import PeerError
from flexgroup.core.message import stamp
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.protocols.parts.primcast_packets import NewState, Restarted
from flexgroup.protocols.parts.proposals import CUT
from flexgroup.protocols.primcast import PrimCast
from flexgroup.testing.replica_schedules import Load, replica_schedule
from flexgroup.trace.collector import Collector
from flexgroup.worlds.bench import Bench
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, run_scenario

from ..explorer.variants_primcast_restarts import (
    RESTARTED,
    Restarting,
    primcast_that_cuts_its_log_all_the_time,
    primcast_that_takes_over_entries_of_any_epoch,
)

PRIMCAST = parse_stack("leader primcast")

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
    assert replica_schedule(PRIMCAST, tuple(sizes), load, seed).broken == ""


def test_in_1000_schedules() -> None:
    assert outcomes(PRIMCAST, range(1000, 2000)) == {"": 1000}


def test_in_200_schedules_in_which_who_starts_again_is_met_late() -> None:
    load = Load(6, 4, 4, 2, meets_late=True)
    found = Counter([replica_schedule(PRIMCAST, (3, 3), load, seed).broken for seed in range(200)])
    assert found == {"": 200}


def test_who_was_the_primary_passes_on_what_another_member_took_it_for() -> None:
    """The member has forgotten since what it had told, and the primary never heard of it."""
    load = Load(6, 4, 3, 3, depth=3, meets_late=True)
    assert replica_schedule(PRIMCAST, (3, 3, 3), load, 83_639).broken == ""


def test_in_200_schedules_with_a_log_that_is_cut_off_all_the_time() -> None:
    assert outcomes(primcast_that_cuts_its_log_all_the_time(), range(200)) == {"": 200}


@pytest.mark.large
def test_in_10000_schedules() -> None:
    assert outcomes(PRIMCAST, range(1000, 11_000)) == {"": 10_000}


@pytest.mark.parametrize("case", RESTARTED, ids=lambda case: case.variant.__name__)
def test_schedules_catch_what_is_not_stored_or_not_told(case: Restarting) -> None:
    plan = case.variant()
    assert any(replica_schedule(plan, case.sizes, case.load, seed).broken for seed in case.seeds)


def test_the_same_schedules_do_primcast_itself_no_harm() -> None:
    for sizes, load, seeds in {(case.sizes, case.load, case.seeds) for case in RESTARTED}:
        for seed in seeds:
            assert replica_schedule(PRIMCAST, sizes, load, seed).broken == ""


# What is stored.


def bench_of(*sizes: int, plan: StackPlan = PRIMCAST) -> Bench:
    return Bench(plan, sum(sizes), replicas=replicas_of_sizes(sizes))


def settle(bench: Bench) -> None:
    while bench.channels:
        bench.deliver(*next(iter(bench.channels)))


def layer(bench: Bench, process: int) -> PrimCast:
    top = bench.hosts[process].stack.layers[-1]
    assert isinstance(top, PrimCast)
    return top


def test_the_log_is_cut_off_behind_what_all_have_delivered() -> None:
    bench = bench_of(3, 1)
    for _ in range(4 * CUT):
        bench.cast(0, (0, 1, 2, 3))
        settle(bench)
    for process in range(4):
        stored = bench.hosts[process].stored[-1]
        assert len(stored.log) <= 2 * CUT, process
        assert stored.first > CUT, process
        assert len(layer(bench, process).T.kept) <= 2 * CUT, process


def test_a_message_that_another_group_delivered_and_never_spoke_of_again_holds_up_nothing() -> None:
    """Group 1 does not say that it has delivered the only message to both."""
    bench = bench_of(3, 1)
    bench.cast(0, (0, 1, 2, 3))
    for _ in range(4 * CUT):
        bench.cast(0, (0, 1, 2))
        settle(bench)
    assert bench.hosts[1].stored[-1].first > CUT
    assert layer(bench, 1).T.kept[0].m.destinations == (0, 1, 2, 3)
    assert len(layer(bench, 1).T.kept) < 2 * CUT


def test_a_proposal_of_an_epoch_whose_beginning_was_lost_is_no_fault_of_the_primary() -> None:
    """2 has the state of the epoch of 0 before 1, whose epoch it has missed, has met it again."""
    bench = bench_of(3)
    bench.crash(2)
    bench.suspect(1, 0)
    bench.lose(2)
    bench.recover(2)
    bench.deliver(2, 0)
    bench.deliver(0, 2)
    bench.deliver(1, 0)
    bench.deliver(0, 1)
    bench.remove(1, 2)  # the state of the epoch of 1
    m = bench.cast(1, (0, 1, 2))
    bench.deliver(1, 2)
    bench.deliver(1, 2)
    assert layer(bench, 2).E_cur < layer(bench, 2).E_prom == layer(bench, 1).E_cur
    settle(bench)
    assert [[one.id for one in order] for order in bench.delivered] == [[m.id]] * 3


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
    assert len(bench.delivered[2]) == 3 * CUT
    for _ in range(4 * CUT):
        bench.cast(0, (0, 1, 2))
        settle(bench)
    assert len(layer(bench, 1).T.kept) < 3 * CUT


@pytest.mark.parametrize("count", [5, CUT, 3 * CUT + 5])
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
    bench = bench_of(3, plan=parse_stack("leader primcast fifo"))
    for _ in range(2 * CUT):
        bench.cast(0, (0, 1, 2))
        settle(bench)
    bench.crash(2)
    bench.recover(2)
    settle(bench)
    assert bench.delivered[2][2 * CUT :] == bench.delivered[0]


# What is told.


def test_who_starts_again_takes_part_in_nothing_before_it_has_the_state_of_its_epoch() -> None:
    """A proposal may come before the primary has heard of the restart, behind one that is lost."""
    bench = bench_of(3)
    bench.cast(0, (0, 1, 2))
    bench.crash(2)
    bench.lose(2)
    bench.recover(2)
    bench.cast(0, (0, 1, 2))
    while (0, 2) in bench.channels:
        bench.deliver(0, 2)
    assert layer(bench, 2).recovering
    assert not layer(bench, 2).T.kept
    settle(bench)
    assert not layer(bench, 2).recovering
    assert bench.delivered[2] == bench.delivered[0]
    assert len(bench.delivered[0]) == 2


def test_who_starts_again_as_the_primary_begins_an_epoch() -> None:
    bench = bench_of(3)
    bench.crash(0)
    bench.recover(0)
    settle(bench)
    assert {layer(bench, process).E_cur for process in range(3)} == {stamp(1, 0)}


def test_what_no_correct_peer_sends_is_refused() -> None:
    bench = bench_of(3, 1)
    with pytest.raises(PeerError):
        layer(bench, 2).on_packet(4, Restarted())
    with pytest.raises(PeerError, match="NewState"):
        layer(bench, 2).on_packet(0, NewState(stamp(0, 0), 0, (), ()))


def test_who_starts_again_in_the_simulator_delivers_what_the_others_do() -> None:
    faults = Faults(
        crashes=("0@50ms", "1@120ms", "4@130ms"),
        recoveries=("0@90ms", "1@170ms", "4@180ms"),
        detection="5ms",
    )
    collector = Collector()
    scenario = Scenario(
        "leader primcast", 6, 4, "random:2", "lan:sync=1ms", 0.3, drain=1.0, rate=100.0,
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


# A schedule that is too long to be met by chance.


def arrive(bench: Bench, *channels: str) -> None:
    """Let the oldest packet of each of these channels arrive."""
    for channel in channels:
        source, target = map(int, channel.split("->"))
        bench.deliver(source, target)


def proposed_in_an_epoch_that_is_over(plan: StackPlan) -> bool:
    """What 0 proposed in its epoch, and 1 began the next one without, must not come back."""
    bench = bench_of(3, plan=plan)
    for _ in range(2):
        bench.cast(0, (0, 1, 2))
    del bench.channels[0, 1], bench.channels[0, 2]
    bench.suspect(1, 0)
    arrive(bench, "1->2", "2->1")
    bench.cast(3, (0, 1, 2))
    arrive(bench, "3->1", "1->2", "1->2", "2->1", "2->1")
    assert len(bench.delivered[1]) == 1
    arrive(bench, "1->0", "1->0")
    bench.crash(0)
    bench.lose(0)
    bench.recover(0)
    bench.crash(1)
    bench.suspect(0, 1)
    bench.suspect(2, 1)
    while inside := [channel for channel in bench.channels if {*channel} <= {0, 2}]:
        bench.deliver(*inside[0])
    bench.recover(1)
    bench.trust(0, 1)
    bench.trust(2, 1)
    settle(bench)
    return len({tuple([m.id for m in order]) for order in bench.delivered}) == 1


@pytest.mark.parametrize(
    ("schedule", "variant"),
    [(proposed_in_an_epoch_that_is_over, primcast_that_takes_over_entries_of_any_epoch)],
)
def test_a_long_schedule_shows_what_a_variant_lacks(
    schedule: Callable[[StackPlan], bool], variant: Callable[[], StackPlan]
) -> None:
    assert schedule(PRIMCAST)
    assert not schedule(variant())
