"""White-Box: what Gotsman, Lefort and Chockler 2019 claim of it, and what our page adds."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import guarantees_of_channels
from flexgroup.core.message import Message, Packet
from flexgroup.core.replicas import Replicas, replicas_of_sizes
from flexgroup.metrics.costs import costs
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.protocols.parts.white_box_packets import Accept, Multicast, NewLeader
from flexgroup.protocols.white_box import LEADER, RECOVERING, WhiteBox
from flexgroup.trace.collector import Collector
from flexgroup.trace.history import History
from flexgroup.worlds.bench import Bench
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.network import Network
from flexgroup.worlds.simulator.scenario import Scenario, run_scenario

from .broadcast_runs import run
from .planned_casts import DELAY, Planned, deliveries, simulate
from .test_skeen_paper import network

STACK = "leader white-box"
PLAN = parse_stack(STACK)

SYSTEMS = [(1, 3), (1, 5), (2, 1), (2, 3), (3, 1), (3, 3), (4, 2), (2, 5)]
"""How many groups, and how many replicas in each."""


def groups_of(count: int, size: int) -> Replicas:
    return replicas_of_sizes([size] * count)


def of_groups(replicas: Replicas, *numbers: int) -> tuple[int, ...]:
    return tuple(sorted(sum((replicas[number] for number in numbers), ())))


def runs(
    replicas: Replicas, casts: list[Planned], among: Network | None = None, seed: int = 1
) -> History:
    return simulate(STACK, sum(map(len, replicas)), casts, among, seed, replicas)


def longest(history: History, replicas: Replicas, number: int) -> tuple[float, float]:
    """Delays from the i-th multicast to the last delivery by a leader, and by a follower."""
    at = deliveries(history, number)
    leaders = {group[0] for group in replicas}
    return (
        max(delays for process, delays in at.items() if process in leaders),
        max((delays for process, delays in at.items() if process not in leaders), default=0.0),
    )


# The normal case.


@pytest.mark.parametrize(("count", "size"), SYSTEMS)
def test_three_delays_at_leaders_and_four_at_followers(count: int, size: int) -> None:
    """Section IV: MULTICAST, ACCEPT, ACCEPT_ACK; and DELIVER."""
    replicas = groups_of(count, size)
    history = runs(replicas, [Planned(of_groups(replicas, *range(count)))])
    assert longest(history, replicas, 0) == (3.0, 4.0 if size > 1 else 0.0)


@pytest.mark.parametrize(("count", "size"), SYSTEMS)
def test_packets(count: int, size: int) -> None:
    """d groups of n: the client asks dn, of which the paper's would ask the d leaders."""
    d, n = count, size
    bench = bench_of(*[n] * (d + 1))
    bench.cast(bench.size, of_groups(bench.replicas, *range(d)))
    sent: Counter[str] = Counter()
    while bench.channels:
        sent[type(inner(bench.deliver(*next(iter(bench.channels))))).__name__] += 1
    assert sent["Multicast"] == d * n
    assert sent["Accept"] == d * (d * n - 1)
    assert sent["AcceptAck"] == d * (d * n - 1)
    assert sent["Deliver"] == d * (n - 1)
    assert sum(sent.values()) == d * n + 2 * d * (d * n - 1) + d * (n - 1)


@pytest.mark.parametrize(("origin", "asked"), [(0, 0), (1, 5), (3, 0), (6, 6), (8, 6), (9, 6)])
def test_a_leader_need_not_ask_anybody(origin: int, asked: int) -> None:
    bench = bench_of(3, 3, 3)
    bench.cast(origin, of_groups(bench.replicas, 0, 1))
    sent = [one.packet for channel in bench.channels.values() for one in channel]
    assert len([packet for packet in sent if isinstance(inner(packet), Multicast)]) == asked


def test_genuine() -> None:
    """Section II: only the origin and the destination groups take part, under contention too."""
    random = Random(3)
    replicas = groups_of(4, 3)
    casts = [
        Planned(of_groups(replicas, *random.sample(range(4), 2)), at=random.random() * 4)
        for _ in range(60)
    ]
    history = runs(replicas, casts)
    assert costs(history).genuine_rate == 1.0
    (verdict,) = check(history, ["minimality"])
    assert verdict.outcome is Outcome.HOLDS


class PromptToLeader(Network):
    """A MULTICAST to process 0 takes no time at all; everything else takes one delay."""

    def delay(self, source: int, target: int, packet: Packet | None, random: Random) -> int:
        prompt = target == 0 and packet is not None and isinstance(inner(packet), Multicast)
        return 0 if prompt else DELAY


class Uneven(Network):
    """Every packet takes any time up to one delay."""

    def delay(self, source: int, target: int, packet: Packet | None, random: Random) -> int:
        return int(random.random() * (DELAY + 1))


# The second group has ordered three messages before, so that it proposes a high timestamp for the
# message that is watched, and what the first group gets until it knows that is in its way.
THREE = groups_of(3, 3)
PAST = [Planned(of_groups(THREE, 1)) for _ in range(3)]
WATCHED = len(PAST)
AT = 20.0
OFFSETS = [step / 100 for step in range(401)]


def latency_with_another_at(offset: float, among: Network | None) -> tuple[float, float]:
    """How long leaders and followers take for a message to groups 0 and 1.

    Another one, to groups 0 and 2, is multicast so long after it.
    """
    watched = Planned(of_groups(THREE, 0, 1), at=AT)
    other = Planned(of_groups(THREE, 0, 2), at=AT + offset)
    return longest(runs(THREE, [*PAST, watched, other], among), THREE, WATCHED)


def test_almost_five_delays_in_the_worst_case_and_six_at_followers() -> None:
    """The other comes to the leader just before it knows the global timestamp of the first.

    It gets a lower local timestamp, and it takes three more delays to know that it may follow: to
    the leader of group 2, from there to everybody, and acknowledgements.
    """
    found = {
        offset: latency_with_another_at(offset, PromptToLeader(**network(fifo=True)))
        for offset in OFFSETS
    }
    worst = max(found, key=found.__getitem__)
    assert (worst, found[worst]) == (1.99, (4.99, 5.99))
    assert found[0.0] == found[4.0] == (3.0, 4.0)


def test_four_and_five_delays_at_most_if_all_delays_are_equal() -> None:
    """The other must be multicast one delay earlier to be there at the same time."""
    found = {offset: latency_with_another_at(offset, None) for offset in OFFSETS}
    assert max(found.values()) == (4.0, 5.0)
    assert found[0.0] == found[4.0] == (3.0, 4.0)


def test_no_latency_exceeds_five_delays_however_delays_and_multicasts_fall() -> None:
    """Nor six at followers: what is in the way came before two delays, and needs three at most."""
    leaders = followers = 0.0
    for seed in range(40):
        random = Random(seed)
        casts = [
            Planned(of_groups(THREE, *random.sample(range(3), 2)), at=random.random() * 6)
            for _ in range(30)
        ]
        history = runs(THREE, casts, Uneven(**network(fifo=True)), seed)
        for number in range(len(casts)):
            at = longest(history, THREE, number)
            leaders, followers = max(leaders, at[0]), max(followers, at[1])
    assert 3 < leaders <= 5
    assert leaders < followers <= 6


# Recovery.


def bench_of(*sizes: int) -> Bench:
    return Bench(PLAN, sum(sizes), replicas=replicas_of_sizes(sizes))


def inner(packet: Packet) -> Packet:
    """The packet of White-Box in that of the oracle below it."""
    m = getattr(packet, "m", None)
    assert isinstance(m, Message)
    assert isinstance(m.payload, Packet)
    return m.payload


def layer(bench: Bench, process: int) -> WhiteBox:
    top = bench.hosts[process].stack.layers[-1]
    assert isinstance(top, WhiteBox)
    return top


def settle(bench: Bench) -> None:
    while bench.channels:
        bench.deliver(*next(iter(bench.channels)))


def orders(bench: Bench) -> list[list[int]]:
    return [[m.id for m in order] for order in bench.delivered]


def test_seven_delays_from_a_suspicion_until_all_deliver_what_was_under_way() -> None:
    """NEW_LEADER, NEWLEADER_ACK, NEW_STATE, NEWSTATE_ACK, and then ACCEPT, ACCEPT_ACK, DELIVER."""
    outcome = run(STACK, 3, [(0.0, 0), (0.5, 2)], crashes=[(1.2, 0)], detection=2.0)
    assert outcome.delivered[1] == outcome.delivered[2]
    assert len(outcome.delivered[1]) == 2
    assert outcome.latency == pytest.approx(1.2 + 2.0 + 7)


def test_a_leader_that_was_deposed_wrongly_follows() -> None:
    bench = bench_of(3, 1)
    bench.suspect(1, 0)
    bench.cast(0, (0, 1, 2, 3))
    bench.cast(1, (0, 1, 2, 3))
    settle(bench)
    bench.trust(1, 0)
    bench.cast(0, (0, 1, 2))
    settle(bench)
    assert [layer(bench, p).status == LEADER for p in range(4)] == [False, True, False, True]
    assert orders(bench)[0] == orders(bench)[1] == orders(bench)[2]
    assert [len(order) for order in bench.delivered] == [3, 3, 3, 2]


def test_another_is_told_of_a_ballot_whose_leader_is_suspected() -> None:
    """Process 1 begins a ballot that only 2 hears of, and crashes."""
    bench = bench_of(3)
    bench.suspect(1, 0)
    assert isinstance(inner(bench.remove(1, 0)), NewLeader)
    bench.deliver(1, 2)
    bench.crash(1)
    bench.cast(0, (0, 1, 2))
    settle(bench)
    assert bench.delivered[0] == []
    assert layer(bench, 2).status == RECOVERING
    for process in (0, 2):
        bench.suspect(process, 1)
    settle(bench)
    assert len(bench.delivered[0]) == len(bench.delivered[2]) == 1
    assert layer(bench, 0).ballot == 3


def test_an_origin_that_crashes_has_told_only_one_process() -> None:
    """Section V has it retry; here the ACCEPT of one leader stands for the lost MULTICASTs."""
    bench = bench_of(3, 3)
    bench.cast(6, (0, 1, 2, 3, 4, 5))
    for process in (1, 2, 3, 4, 5):
        assert isinstance(inner(bench.remove(6, process)), Multicast)
    settle(bench)
    assert [len(order) for order in bench.delivered] == [1] * 6


def test_what_a_follower_remembers_is_proposed_when_it_leads() -> None:
    bench = bench_of(3, 1)
    bench.cast(4, (0, 1, 2, 3))
    bench.crash(0)
    settle(bench)
    assert bench.delivered[1] == []
    for process in (1, 2):
        bench.suspect(process, 0)
    settle(bench)
    assert [len(order) for order in bench.delivered] == [0, 1, 1, 1]


def test_a_message_keeps_the_timestamp_that_a_majority_accepted() -> None:
    """Section V: a new leader does not propose another for what may be committed elsewhere."""
    bench = bench_of(3, 1)
    bench.cast(3, (0, 1, 2, 3))
    bench.deliver(3, 0)
    settle_to(bench, 3)
    assert len(bench.delivered[3]) == 1
    before = layer(bench, 3).messages.known[bench.delivered[3][0].id].gts
    bench.crash(0)
    bench.cast(4, (0, 1, 2))
    for process in (1, 2):
        bench.suspect(process, 0)
    settle(bench)
    assert layer(bench, 1).messages.known[bench.delivered[3][0].id].gts == before
    assert [len(order) for order in bench.delivered] == [0, 2, 2, 1]


def settle_to(bench: Bench, process: int) -> None:
    """Let ACCEPTs arrive everywhere but at process 0, and acknowledgements at this one."""
    while channels := [
        (source, target)
        for source, target in bench.channels
        if target != 0 and (target == process or source in (0, process))
    ]:
        bench.deliver(*channels[0])


# What is not in the paper.


def test_what_all_have_delivered_is_forgotten_and_what_one_lacks_is_not() -> None:
    bench = bench_of(3, 1)
    for _ in range(10):
        bench.cast(4, (0, 1, 2, 3))
        settle(bench)
    assert all(len(layer(bench, process).messages.known) <= 2 for process in range(4))
    bench.crash(2)
    for _ in range(10):
        bench.cast(4, (0, 1, 2, 3))
        settle(bench)
    assert all(len(layer(bench, process).messages.known) >= 10 for process in (0, 1, 3))


def test_what_is_forgotten_is_not_ordered_again() -> None:
    """Though the MULTICAST to one follower comes long after everything else."""
    bench = bench_of(3, 1)
    bench.cast(4, (0, 1, 2, 3))
    late = (4, 2)
    while channels := [channel for channel in bench.channels if channel != late]:
        bench.deliver(*channels[0])
    for _ in range(3):
        bench.cast(0, (0, 1, 2, 3))
        while channels := [channel for channel in bench.channels if channel != late]:
            bench.deliver(*channels[0])
    assert len(layer(bench, 2).messages.known) <= 2
    assert isinstance(inner(bench.deliver(*late)), Multicast)
    bench.crash(0)
    for process in (1, 2):
        bench.suspect(process, 0)
    settle(bench)
    assert [len(order) for order in bench.delivered] == [4] * 4
    assert not layer(bench, 2).messages.undelivered


def test_an_accept_stands_for_the_multicast_that_has_not_come() -> None:
    bench = bench_of(1, 1)
    bench.cast(2, (0, 1))
    bench.deliver(2, 0)
    bench.deliver(0, 1)
    assert any(isinstance(inner(one.packet), Accept) for one in bench.channels[1, 0])


def test_a_message_to_a_part_of_a_group_is_refused() -> None:
    replicas = replicas_of_sizes([3, 1])
    stack = PLAN.build(0, 4, replicas=replicas)
    with pytest.raises(UsageError, match="a part of the group 0,1,2"):
        stack.cast(Message(0, (0, 1, 3), b""))


def test_it_needs_a_leader_oracle_below() -> None:
    channels = guarantees_of_channels(reliable=True, fifo=True)
    assert "uniform agreement" in PLAN.promises(channels)
    with pytest.raises(UsageError, match=r"missing leader .* put a layer that gives it below"):
        parse_stack("white-box").promises(channels)


def test_crashes_and_wrong_suspicions_in_the_simulator() -> None:
    """With the world's suspicions, and with heartbeats."""
    faults = Faults(
        crashes=("0@20ms", "4@30ms"), suspicions=("1:0@5ms-9ms", "5:3@7ms-8ms"), detection="5ms"
    )
    for stack in (STACK, "heartbeat leader white-box", "vcube-detector leader white-box"):
        collector = Collector()
        scenario = Scenario(
            stack, 6, 6, "random:2", "lan", 0.08, drain=0.2, faults=faults, groups="2x3"
        )
        outcome = run_scenario(scenario, collector)
        assert outcome.answered == outcome.multicasts > 200
        history = collector.history("test", 6, complete=True)
        verdicts = check(history, ["acyclic order", "prefix order", "uniform agreement"])
        assert {verdict.outcome for verdict in verdicts} == {Outcome.HOLDS}
