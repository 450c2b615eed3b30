"""Paxos with stable storage: random schedules in which replicas crash and start again."""

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
from flexgroup.protocols.parts.paxos_packets import Accept, Accepting, Stable
from flexgroup.protocols.paxos import CUT, Paxos
from flexgroup.trace.collector import Collector
from flexgroup.worlds.bench import Bench
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, run_scenario

from ..explorer.variants_paxos import (
    RESTART_VARIANTS,
    paxos_that_sends_again_only_what_it_has_not_learnt,
)
from .restart_schedules import Failures, restart_schedule

PAXOS = "leader paxos"


def outcomes(stack: str | StackPlan, seeds: range) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in seeds:
        size = (3, 3, 4, 5)[seed % 4]
        failures = Failures((size - 1) // 2, seed % 7, seed // 3 % 4)
        found[restart_schedule(stack, size, 2 + seed % 6, failures, seed)] += 1
    return found


@settings(max_examples=150, deadline=None)
@given(
    size=st.integers(1, 5),
    broadcasts=st.integers(1, 8),
    crashes=st.integers(0, 6),
    suspicions=st.integers(0, 4),
    stay_down=st.booleans(),
    seed=st.integers(0, 1 << 32),
    fifo=st.booleans(),
)
def test_every_schedule_keeps_what_is_promised(
    size: int,
    broadcasts: int,
    crashes: int,
    suspicions: int,
    stay_down: bool,
    seed: int,
    fifo: bool,
) -> None:
    failures = Failures((size - 1) // 2, crashes, suspicions if size > 2 else 0, stay_down)
    assert restart_schedule(PAXOS, size, broadcasts, failures, seed, fifo) == ""


@settings(max_examples=50, deadline=None)
@given(size=st.integers(1, 4), crashes=st.integers(1, 8), seed=st.integers(0, 1 << 32))
def test_all_replicas_may_be_down_at_a_time_if_they_come_back(
    size: int, crashes: int, seed: int
) -> None:
    assert restart_schedule(PAXOS, size, 5, Failures(size, crashes, 0), seed) == ""


def test_in_500_schedules() -> None:
    assert outcomes(PAXOS, range(1000, 1500)) == {"": 500}


@pytest.mark.large
def test_in_5000_schedules() -> None:
    assert outcomes(PAXOS, range(1000, 6000)) == {"": 5000}


@pytest.mark.parametrize("variant", RESTART_VARIANTS, ids=lambda variant: variant.__name__)
def test_the_same_schedules_catch_what_stores_or_tells_too_little(
    variant: Callable[[], StackPlan],
) -> None:
    plan = variant()
    assert any(set(outcomes(plan, range(seed, seed + 1))) != {""} for seed in range(6000))


# What has to be told to who starts again.


def bench_of_three() -> Bench:
    return Bench(parse_stack(PAXOS), 3, replicas=replicas_of_sizes([3]))


def layer(bench: Bench, process: int) -> Paxos:
    top = bench.hosts[process].stack.layers[-1]
    assert isinstance(top, Paxos)
    return top


def settle(bench: Bench) -> None:
    while bench.channels:
        bench.deliver(*next(iter(bench.channels)))


def test_the_log_is_cut_off_in_stable_storage_now_and_then() -> None:
    bench = bench_of_three()
    for number in range(CUT + 5):
        bench.cast(number % 4, (0, 1, 2))
        settle(bench)
    for process in range(3):
        stored = bench.hosts[process].stored[-1]
        assert stored.first == CUT
        assert len(stored.log) == 5
        bench.crash(process)
        bench.recover(process)
        settle(bench)
    assert all(len(order) == CUT + 5 for order in bench.delivered)
    bench.cast(3, (0, 1, 2))
    settle(bench)
    assert all(len(order) == CUT + 6 for order in bench.delivered)


def test_below_another_layer_everything_is_kept_and_told_again() -> None:
    plan = parse_stack("leader paxos best-effort")
    bench = Bench(plan, 3, replicas=replicas_of_sizes([3]))
    for number in range(CUT + 5):
        bench.cast(number % 3, (0, 1, 2))
        settle(bench)
    assert bench.hosts[2].stored[1].first == 0
    assert len(bench.hosts[2].stored[1].log) == CUT + 5
    bench.crash(2)
    bench.recover(2)
    settle(bench)
    # This layer keeps no count of what the application has, and gives it everything again.
    assert len(bench.delivered[2]) == 2 * (CUT + 5)
    assert bench.delivered[2][CUT + 5 :] == bench.delivered[0]


def delivered_by_who_waits_for_a_lost_vote(plan: StackPlan) -> int:
    """How much 2 delivers, which has accepted what 0 had chosen from 1 only, in a later ballot.

    In that ballot, 1 has its own vote and that of 2, and not of a majority; but it has heard of 0
    that the slot is chosen. Its proposal to 3 and to 0 is lost, as they crash, one after the other.
    """
    bench = Bench(plan, 4, replicas=replicas_of_sizes([4]))
    bench.cast(0, (0, 1, 2, 3))
    for source, target in ((0, 1), (0, 3), (1, 0), (3, 0)):
        bench.deliver(source, target)
    bench.suspect(1, 0)
    for source, target in ((1, 2), (1, 3), (2, 1), (3, 1), (0, 1), (1, 2), (2, 1)):
        bench.deliver(source, target)
    assert [len(order) for order in bench.delivered] == [1, 1, 0, 0]
    for _ in range(2):
        bench.remove(0, 2)
    for process in (3, 0):
        bench.crash(process)
        bench.lose(process)
        bench.recover(process)
    bench.trust(1, 0)
    settle(bench)
    return len(bench.delivered[2])


def test_who_waits_for_a_vote_that_was_lost_is_told_what_is_chosen() -> None:
    assert delivered_by_who_waits_for_a_lost_vote(parse_stack(PAXOS)) == 1
    variant = paxos_that_sends_again_only_what_it_has_not_learnt()
    assert delivered_by_who_waits_for_a_lost_vote(variant) == 0


def test_who_waits_for_a_slot_that_all_had_is_told_so() -> None:
    """A slot without messages leaves no trace at the application. It was delivered before the
    crash, so that the last vote for it is for what was chosen."""
    bench = bench_of_three()
    bench.crash(2)
    bench.hosts[2].stored[-1].log[0] = Accepting(stamp(0, 0), ())
    bench.recover(2)
    leader = layer(bench, 0).ledger
    leader.stable = leader.recent = leader.next = 1
    settle(bench)
    assert layer(bench, 2).ledger.next == 1


def test_what_no_correct_peer_calls_stable_is_refused() -> None:
    bench = bench_of_three()
    for packet in (Stable(1), Accept(stamp(0, 0), 1, 1, ()), Stable(1 << 60)):
        with pytest.raises(PeerError):
            layer(bench, 2).on_packet(0, packet)


def test_a_message_waits_for_two_synchronisations() -> None:
    """The leader writes its own vote before it proposes, and others theirs before they answer."""
    latencies = []
    for network in ("lan:jitter=0s", "lan:jitter=0s,sync=1ms"):
        scenario = Scenario(PAXOS, 3, 1, "random:1", network, 0.1, groups="1x3")
        latencies.append(run_scenario(scenario).client_latency)
    assert latencies[1] - latencies[0] == pytest.approx(0.002, rel=0.01)


def test_a_byte_that_is_stored_has_a_price() -> None:
    latencies = []
    for network in ("lan", "lan:stored=1us"):
        scenario = Scenario(PAXOS, 3, 1, "random:1", network, 0.1, groups="1x3")
        latencies.append(run_scenario(scenario).client_latency)
    assert latencies[1] - latencies[0] > 64e-6


def test_replicas_that_recover_deliver_what_the_others_do() -> None:
    faults = Faults(
        crashes=("0@50ms", "1@120ms"), recoveries=("0@90ms", "1@170ms"), detection="5ms"
    )
    for stack in (PAXOS, "heartbeat leader paxos"):
        for network in ("lan", "lan:sync=1ms,stored=10ns"):
            collector = Collector()
            scenario = Scenario(
                stack, 3, 3, "random:1", network, 0.3, drain=1.0, rate=100.0, faults=faults,
                groups="1x3",
            )  # fmt: skip
            run_scenario(scenario, collector)
            rows = collector.history("test", 3, complete=True).deliveries
            orders: list[list[int]] = [[], [], []]
            for process, m in zip(rows.process.tolist(), rows.message.tolist(), strict=True):
                orders[process].append(m)
            assert orders[0] == orders[1] == orders[2]
            assert len(orders[0]) == len(set(orders[0])) > 70
