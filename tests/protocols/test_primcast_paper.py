"""PrimCast: what Pacheco, Coelho and Pedone 2023 claim of it, and what our page adds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.core.layer import Context
from flexgroup.core.message import Message, Packet, message_id, stamp
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.metrics.costs import costs
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.protocols.parts.primcast_packets import Start
from flexgroup.protocols.primcast import PrimCast
from flexgroup.trace.collector import Collector
from flexgroup.trace.history import History
from flexgroup.worlds.bench import Bench
from flexgroup.worlds.explorer import all_systems
from flexgroup.worlds.explorer.explorer import explore
from flexgroup.worlds.explorer.scope import Scope
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.network import Network
from flexgroup.worlds.simulator.scenario import Scenario, run_scenario

from .planned_casts import DELAY, Planned, deliveries, latency, orders, packets, simulate
from .test_skeen_paper import network

STACK = "leader primcast"
PLAN = parse_stack(STACK)


def run(
    sizes: Sequence[int], casts: Sequence[Planned], stack: str = STACK, **options: Any
) -> History:
    return simulate(stack, sum(sizes), casts, replicas=replicas_of_sizes(sizes), **options)


def to_all(sizes: Sequence[int], at: float = 0.0) -> Planned:
    return Planned(tuple(range(sum(sizes))), at)


def sent(history: History) -> Counter[str]:
    """Packets by type; without the oracle, which carries them in packets of its own."""
    return Counter(packet.packet for packet in packets(history))


# Delays.


@pytest.mark.parametrize("sizes", [(3, 3), (3, 1), (5, 5), (3, 3, 3), (1, 3, 5), (7, 2)])
def test_three_delays_at_every_destination(sizes: tuple[int, ...]) -> None:
    """The abstract: START, the primaries' ACKs, and the others'; at leaders and at followers."""
    history = run(sizes, [to_all(sizes)])
    found = deliveries(history, 0)
    assert found.keys() == set(range(sum(sizes)))
    assert max(found.values()) == 3
    first = [sum(sizes[:place]) for place in range(len(sizes))]
    assert [found[leader] for leader, size in zip(first, sizes, strict=True) if size > 1] == [
        3 for size in sizes if size > 1
    ]


@pytest.mark.parametrize("ahead", [1, 5])
def test_three_delays_however_far_the_clocks_are_apart(ahead: int) -> None:
    """The abstract: clocks advance without consensus. BUMPs travel while ACKs do."""
    past = [Planned((3, 4, 5)) for _ in range(ahead)]
    history = run((3, 3), [*past, to_all((3, 3), at=10.0)])
    assert deliveries(history, ahead) == dict.fromkeys(range(6), 3.0)


@pytest.mark.parametrize(("n", "primary", "followers"), [(1, 1, 1), (3, 3, 2), (5, 3, 3)])
def test_a_message_to_one_group(n: int, primary: int, followers: int) -> None:
    """Of three, a follower's own ACK and the primary's are a majority, after two delays."""
    found = deliveries(run((n,), [to_all((n,))]), 0)
    assert found == {0: primary} | dict.fromkeys(range(1, n), followers)


def test_groups_of_one_take_two_delays_as_skeen_does() -> None:
    for k in range(2, 6):
        found = deliveries(run((1,) * k, [to_all((1,) * k)]), 0)
        assert found == deliveries(simulate("skeen", k, [to_all((1,) * k)]), 0)


class PromptToProcess0(Network):
    """A START to process 0 takes no time at all; everything else takes the longest, one delay."""

    def delay(self, source: int, target: int, packet: Packet | None, random: Random) -> int:
        carried = getattr(packet, "m", None)
        prompt = target == 0 and isinstance(getattr(carried, "payload", None), Start)
        return 0 if prompt and source >= self.clients else DELAY

    clients = 9


# The second group has handled three messages before, so it gives the watched message a high
# timestamp, and what the first primary handles until it knows that is in its way.
PAST = [Planned((3, 4, 5)) for _ in range(3)]
WATCHED = len(PAST)
AT = 10.0


def latency_with_another_at(offset: float) -> float:
    """Of a message to the first two groups, while one to the first and the third is multicast."""
    casts = [*PAST, Planned(tuple(range(6)), AT), Planned((0, 1, 2, 6, 7, 8), AT + offset)]
    return latency(run((3, 3, 3), casts, network=PromptToProcess0(**network(fifo=True))), WATCHED)


def test_latency_is_almost_five_delays_in_the_worst_case() -> None:
    """The other message comes to the primary just before the higher timestamp does.

    It gets a lower one, and it takes three more delays to know that it may follow.
    """
    offsets = [step / 20 for step in range(60)]
    found = {offset: latency_with_another_at(offset) for offset in [*offsets, 1.99]}
    worst = max(found, key=found.__getitem__)
    assert (worst, found[worst]) == (1.99, 4.99)
    assert found[0.0] == found[2.95] == 3


# Packets.


@pytest.mark.parametrize("sizes", [(1,), (3,), (3, 3), (5, 3, 1), (3, 3, 3)])
def test_as_many_packets_as_the_square_of_the_destinations(sizes: tuple[int, ...]) -> None:
    """d START, and an ACK from each of d destinations to each of the others; and BUMPs."""
    d, k = sum(sizes), len(sizes)
    found = sent(run(sizes, [to_all(sizes)], "primcast"))
    assert found["Start"] == d
    assert found["Proposal"] == k * (d - 1)
    assert found["Ack"] == (d - k) * (d - 1)
    assert found.total() - found["Bump"] == d * d
    assert found["Bump"] <= (k - 1) * sum(n * (n - 1) for n in sizes)


@pytest.mark.parametrize("n", [1, 3, 5])
def test_who_takes_over_a_clock_tells_its_group(n: int) -> None:
    """n (n - 1) BUMPs in the group with the lower clock, and none in the other."""
    casts = [Planned(tuple(range(n, 2 * n))), to_all((n, n), at=10.0)]
    bumps = [p for p in packets(run((n, n), casts, "primcast")) if p.packet == "Bump"]
    assert len(bumps) == n * (n - 1)
    assert all(bump.source < n and bump.target < n for bump in bumps)


def test_genuine() -> None:
    """Only the origin and the destinations take part, under contention as well."""
    random = Random(3)
    groups = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (9,)]
    casts = [
        Planned(tuple(sorted(sum(random.sample(groups, random.randint(1, 3)), ()))),
                at=random.random() * 9)
        for _ in range(60)
    ]  # fmt: skip
    history = run((3, 3, 3, 1), casts)
    assert costs(history).genuine_rate == 1.0
    for verdict in check(history, ["minimality", "acyclic order", "uniform agreement"]):
        assert verdict.outcome is Outcome.HOLDS
    assert sum(map(len, orders(history))) == sum(len(cast.destinations) for cast in casts)


# A new epoch.


def test_four_delays_after_a_suspicion_all_have_delivered() -> None:
    """NEW-EPOCH, PROMISE, NEW-STATE, and ACK; START came to followers, who remembered it."""
    history = run((3, 3), [to_all((3, 3))], crashes=[(0.5, 0)], detection=2.0)
    found = deliveries(history, 0)
    assert found.keys() == set(range(1, 6))
    assert max(found.values()) == found[1] == 0.5 + 2.0 + 4


def test_what_the_primary_had_proposed_needs_no_new_epoch() -> None:
    """Its ACK is on the way, and the others are a majority."""
    history = run((3, 3), [to_all((3, 3))], crashes=[(1.5, 0)], detection=100.0)
    assert deliveries(history, 0) == dict.fromkeys(range(1, 6), 3.0)


def layer(bench: Bench, process: int) -> PrimCast:
    top = bench.hosts[process].stack.layers[-1]
    assert isinstance(top, PrimCast)
    return top


def bench_of(*sizes: int) -> Bench:
    return Bench(PLAN, sum(sizes), replicas=replicas_of_sizes(sizes))


def settle(bench: Bench) -> None:
    while bench.channels:
        bench.deliver(*next(iter(bench.channels)))


def test_the_new_primary_begins_with_the_highest_clock_that_it_was_promised() -> None:
    bench = bench_of(3, 1)
    for _ in range(4):
        bench.cast(3, (3,))
    bench.cast(3, (0, 1, 2, 3))
    while (3, 2) in bench.channels:
        bench.deliver(3, 2)
    assert (layer(bench, 2).clock, layer(bench, 1).clock) == (5, 0)
    bench.crash(0)
    bench.suspect(1, 0)
    bench.deliver(1, 2)
    while (2, 1) in bench.channels:
        bench.deliver(2, 1)
    assert layer(bench, 1).E_cur == stamp(1, 1)
    assert layer(bench, 1).clock == 5
    bench.suspect(2, 0)
    settle(bench)
    assert [len(order) for order in bench.delivered] == [0, 1, 1, 5]


def test_who_is_trusted_again_follows_whoever_leads() -> None:
    bench = bench_of(3)
    bench.suspect(1, 0)
    settle(bench)
    bench.trust(1, 0)
    bench.cast(0, (0, 1, 2))
    settle(bench)
    assert {layer(bench, process).E_cur for process in range(3)} == {stamp(1, 1)}
    assert [len(order) for order in bench.delivered] == [1, 1, 1]


def test_with_half_of_a_group_gone_nothing_is_delivered_rather_than_wrongly() -> None:
    history = run((4, 1), [to_all((4, 1))], crashes=[(0.5, 2), (0.5, 3)], detection=3.0)
    assert orders(history) == [[], [], [], [], []]


# Skeen's algorithm is what is left with groups of one.


def small_systems() -> list[Any]:
    scopes = [
        scope
        for processes, messages in ((2, 2), (2, 3), (3, 2))
        for scope in all_systems.systems(processes, messages)
    ]
    return [
        pytest.param(
            scope,
            id=scope.described(),
            marks=[pytest.mark.slow] if all(len(c.destinations) == 3 for c in scope.casts) else [],
        )
        for scope in scopes
    ]


@pytest.mark.parametrize("scope", small_systems())
def test_groups_of_one_agree_with_skeen(scope: Scope) -> None:
    """The same verdict, and the same ends: what each process has delivered, in order."""
    replicas = replicas_of_sizes([1] * scope.processes)
    alone = Scope(scope.processes, scope.casts, replicas=replicas)
    ours = explore(PLAN, alone, keep_going=True)
    skeens = explore(parse_stack("skeen"), alone, keep_going=True)
    assert ours.exhausted
    assert skeens.exhausted
    assert not ours.violations
    assert not skeens.violations
    assert ours.complete == ours.terminals > 0
    assert ours.terminal_orders == skeens.terminal_orders


# In the simulator, and what is refused.


def test_crashes_and_wrong_suspicions_in_the_simulator() -> None:
    """With the world's suspicions, with heartbeats, and over channels that reorder."""
    faults = Faults(
        crashes=("0@20ms", "4@30ms"), suspicions=("1:0@5ms-9ms", "5:3@7ms-8ms"), detection="5ms"
    )
    for stack, among in (
        (STACK, "lan"),
        ("heartbeat leader primcast", "lan"),
        ("fifo leader primcast", "lan:fifo=no"),
    ):
        collector = Collector()
        scenario = Scenario(
            stack, 6, 6, "random:2", among, 0.06, drain=0.3, faults=faults, groups="2x3"
        )
        outcome = run_scenario(scenario, collector)
        assert outcome.answered == outcome.multicasts > 100
        history = collector.history("test", 6, complete=True)
        for verdict in check(history, ["acyclic order", "prefix order"]):
            assert verdict.outcome is Outcome.HOLDS


@pytest.mark.parametrize("destinations", [(0, 1), (1, 2, 3)])
def test_a_message_to_a_part_of_a_group_is_refused(destinations: tuple[int, ...]) -> None:
    one = PrimCast(Context(0, 4, replicas=replicas_of_sizes((3, 1))))
    with pytest.raises(UsageError, match="goes to a part of the group 0,1,2"):
        one.on_cast(Message(message_id(0, 0), destinations, b""))


def test_without_an_oracle_or_over_channels_that_reorder_it_is_refused() -> None:
    reordering = Scenario("leader primcast", 3, 1, "random:1", "lan:fifo=no", 0.1, groups="1x3")
    alone = Scenario("primcast", 3, 1, "random:1", "lan", 0.1, groups="1x3")
    for scenario, missing in ((reordering, "missing fifo"), (alone, "missing leader")):
        with pytest.raises(UsageError, match=missing):
            run_scenario(scenario)
