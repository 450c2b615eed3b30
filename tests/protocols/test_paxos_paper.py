"""Paxos: what Lamport 1998 and 2001 say of it, and what our page adds."""

from __future__ import annotations

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.core.message import stamp
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.protocols.parts.paxos_packets import Prepare
from flexgroup.protocols.paxos import WINDOW, Paxos
from flexgroup.trace.collector import Collector
from flexgroup.worlds.bench import Bench
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, run_scenario

from .broadcast_runs import Broadcasts, run

STACK = "leader paxos"
PLAN = parse_stack(STACK)


def layer(bench: Bench, process: int) -> Paxos:
    top = bench.hosts[process].stack.layers[-1]
    assert isinstance(top, Paxos)
    return top


def bench_of(*sizes: int) -> Bench:
    return Bench(PLAN, sum(sizes), replicas=replicas_of_sizes(sizes))


def settle(bench: Bench) -> None:
    while bench.channels:
        bench.deliver(*next(iter(bench.channels)))


def orders(bench: Bench) -> list[list[int]]:
    return [[m.id for m in order] for order in bench.delivered]


def sent(outcome: Broadcasts) -> int:
    return sum(outcome.sent.values())


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_three_packets_for_each_follower_and_three_delays_from_the_leaders_client(n: int) -> None:
    """2001: phase 2 alone, once a leader is established. It delivers after two delays,
    ACCEPT and ACCEPTED, and the others after a third, CHOSEN."""
    outcome = run(STACK, n, [(0.0, 0)])
    assert sent(outcome) == 3 * (n - 1)
    assert outcome.latency == (3 if n > 1 else 0)
    assert all(len(order) == 1 for order in outcome.delivered)


@pytest.mark.parametrize("n", [3, 5])
def test_a_followers_message_takes_one_packet_and_one_delay_more(n: int) -> None:
    outcome = run(STACK, n, [(0.0, n - 1)])
    assert sent(outcome) == 3 * (n - 1) + 1
    assert outcome.latency == 4


def test_a_client_is_answered_after_four_delays() -> None:
    """REQUEST, ACCEPT, ACCEPTED, and the answer of the leader, the first to deliver."""
    outcome = run_scenario(Scenario(STACK, 3, 1, "random:1", "unit", 0.1, groups="1x3"))
    assert outcome.answered == outcome.multicasts > 20
    assert outcome.client_latency == pytest.approx(0.004)


def test_what_comes_while_batches_are_under_way_goes_together() -> None:
    casts = [(0.0, 0)] * 20
    outcome = run(STACK, 3, casts)
    assert sent(outcome) == 3 * 2 * (WINDOW + 1)
    assert len(outcome.delivered[2]) == 20


def test_after_a_crash_of_the_leader_another_has_the_same_chosen() -> None:
    """2001: the new leader learns in phase 1 what may be chosen. Six delays after the
    suspicion: PREPARE, PROMISE, ACCEPT, ACCEPTED, CHOSEN, and what 2 submits again comes with
    PROMISE."""
    outcome = run(STACK, 3, [(0.0, 0), (0.5, 2)], crashes=[(1.2, 0)], detection=2.0)
    assert outcome.delivered[1] == outcome.delivered[2]
    assert len(outcome.delivered[1]) == 2
    assert outcome.latency == pytest.approx(1.2 + 2.0 + 5)


def test_with_half_of_the_replicas_gone_nothing_is_delivered_rather_than_wrongly() -> None:
    outcome = run(STACK, 4, crashes=[(0.5, 2), (0.5, 3)], detection=3.0)
    assert outcome.delivered == [[], [], [], []]


def test_two_leaders_do_not_have_two_batches_chosen() -> None:
    """2001: P2b. Both propose; only the higher ballot finds a majority."""
    bench = bench_of(3)
    bench.suspect(1, 0)
    bench.cast(0, (0, 1, 2))
    bench.cast(1, (0, 1, 2))
    assert layer(bench, 0).leading is not None
    assert layer(bench, 1).leading is not None
    settle(bench)
    assert orders(bench)[0] == orders(bench)[1] == orders(bench)[2]
    assert len(bench.delivered[0]) == 2
    assert layer(bench, 0).leading is None


def test_who_ignores_a_proposal_tells_the_proposer() -> None:
    """2001: so that it abandons it. The rival's PREPARE is lost on its way here."""
    bench = bench_of(3)
    bench.suspect(1, 0)
    assert isinstance(bench.remove(1, 0).m.payload, Prepare)  # type: ignore[attr-defined]
    bench.deliver(1, 2)
    bench.crash(1)
    for process in (0, 2):
        bench.suspect(process, 1)
    bench.cast(0, (0, 1, 2))
    settle(bench)
    assert len(bench.delivered[0]) == len(bench.delivered[2]) == 1
    assert layer(bench, 0).promised == stamp(2, 0)


def test_votes_count_for_the_ballot_that_they_were_given_in() -> None:
    """Of five, one vote besides the leader's own says little: others may not hear of it."""
    bench = bench_of(5)
    bench.cast(0, (0, 1, 2, 3, 4))
    bench.deliver(0, 1)
    bench.suspect(1, 0)
    bench.deliver(1, 0, 1)
    bench.suspect(0, 1)
    for follower in (2, 3):
        bench.deliver(0, follower, 1)
        bench.deliver(follower, 0)
    leading = layer(bench, 0).leading
    assert leading is not None
    assert leading.accepts == {0: {0}}
    bench.deliver(1, 0)
    assert leading.accepts == {0: {0}}


def test_who_is_trusted_again_follows_whoever_leads() -> None:
    bench = bench_of(3)
    bench.suspect(1, 0)
    settle(bench)
    bench.trust(1, 0)
    bench.cast(0, (0, 1, 2))
    settle(bench)
    assert layer(bench, 0).promised == layer(bench, 2).promised == stamp(1, 1)
    assert len(bench.delivered[0]) == 1


def test_what_all_have_delivered_is_forgotten_and_what_one_lacks_is_not() -> None:
    bench = bench_of(3)
    for _ in range(10):
        bench.cast(0, (0, 1, 2))
        settle(bench)
    assert all(len(layer(bench, process).ledger.votes) <= WINDOW for process in range(3))
    bench.crash(2)
    for _ in range(10):
        bench.cast(0, (0, 1, 2))
        settle(bench)
    assert len(layer(bench, 0).ledger.votes) >= 10
    assert not layer(bench, 0).pending
    assert not layer(bench, 1).pending


def test_groups_order_their_messages_by_themselves() -> None:
    bench = bench_of(3, 1, 2)
    for group in ((0, 1, 2), (3,), (4, 5)):
        bench.cast(6, group)
        bench.cast(3, group)
    settle(bench)
    assert [len(order) for order in bench.delivered] == [2] * 6


@pytest.mark.parametrize("destinations", [(0, 1, 2, 3), ()])
def test_a_message_to_several_groups_is_refused(destinations: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="one group of replicas"):
        bench_of(3, 1).cast(4, destinations)


def test_crashes_and_wrong_suspicions_in_the_simulator() -> None:
    """With the world's suspicions, and with heartbeats."""
    faults = Faults(
        crashes=("0@20ms", "4@30ms"), suspicions=("1:0@5ms-9ms", "5:3@7ms-8ms"), detection="5ms"
    )
    for stack in (STACK, "heartbeat leader paxos", "vcube-detector leader paxos"):
        collector = Collector()
        scenario = Scenario(
            stack, 6, 6, "random:1", "lan", 0.08, drain=0.2, faults=faults, groups="2x3"
        )
        outcome = run_scenario(scenario, collector)
        assert outcome.answered == outcome.multicasts > 200
        history = collector.history("test", 6, complete=True)
        delivered: list[list[int]] = [[] for _ in range(6)]
        rows = history.deliveries
        for process, m in zip(rows.process.tolist(), rows.message.tolist(), strict=True):
            delivered[process].append(m)
        assert delivered[1] == delivered[2]
        assert delivered[3] == delivered[5]
        assert delivered[0] == delivered[1][: len(delivered[0])]
        assert delivered[4] == delivered[3][: len(delivered[4])]
