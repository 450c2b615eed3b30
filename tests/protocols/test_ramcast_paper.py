"""RamCast and the memory below it: what the paper and its prototype say, and what our page adds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from flexgroup.core.codec import Codec
from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.layer import Send, WriteCompleted
from flexgroup.core.message import Message, Packet, message_id, stamp
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import PROTOCOLS, Protocol, StackPlan, parse_stack
from flexgroup.protocols.parts.new_leader import Deny
from flexgroup.protocols.parts.permit import Permit
from flexgroup.protocols.parts.ramcast_packets import Propose
from flexgroup.protocols.protected_memory import Completion, ProtectedMemory, Write
from flexgroup.protocols.ramcast import RamCast
from flexgroup.trace.collector import Collector
from flexgroup.trace.recorder import Recorder
from flexgroup.worlds.bench import Bench
from flexgroup.worlds.simulator.engine import Application, Simulation
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.faults import FaultPlan
from flexgroup.worlds.simulator.network import Network
from flexgroup.worlds.simulator.networks import parse_network
from flexgroup.worlds.simulator.scenario import Scenario, run_scenario

from ..explorer.variant_parts import loaded_anew
from .replica_schedules import broken_promise
from .suspicion_schedules import ORDER

STACK = "leader protected-memory ramcast"
PLAN = parse_stack(STACK)
UNIT = 1_000_000
"""The delay of a write, in nanoseconds: that of the network `unit`."""


def layer(bench: Bench, process: int) -> RamCast:
    top = bench.hosts[process].stack.layers[-1]
    assert isinstance(top, RamCast)
    return top


def bench_of(*sizes: int, plan: StackPlan = PLAN) -> Bench:
    return Bench(plan, sum(sizes), replicas=replicas_of_sizes(sizes))


def settle(bench: Bench) -> Counter[str]:
    """Let everything arrive, and count it by type."""
    written: Counter[str] = Counter()
    while bench.channels:
        arrived = bench.deliver(*next(iter(bench.channels)))
        written[type(innermost(arrived)).__name__] += 1
    return written


def innermost(packet: Packet) -> Packet:
    """What the top layer wrote, or a completion."""
    payload = getattr(getattr(packet, "m", None), "payload", None)
    return innermost(payload) if isinstance(payload, Packet) else packet


@dataclass
class Run(Application):
    """Deliveries of a simulation, as the time of each at each process, in delays."""

    times: dict[tuple[int, int], float] = field(default_factory=dict)

    def delivered(self, simulation: Simulation, process: int, time: int, m: Message) -> None:
        self.times[process, m.id] = time / UNIT

    def last(self, m: int) -> float:
        return max(time for (_, other), time in self.times.items() if other == m)


def simulate(
    sizes: Sequence[int],
    casts: Sequence[tuple[float, int, tuple[int, ...]]],
    network: Network | None = None,
    crashes: Sequence[tuple[float, int]] = (),
) -> Run:
    """Clients multicast one message each, at these times."""
    size = sum(sizes)
    run = Run()
    faults = FaultPlan()
    faults.crashes = [(round(at * UNIT), process) for at, process in crashes]
    faults.detection = UNIT
    recorder = Recorder(Collector())
    simulation = Simulation(
        size=size,
        clients=len(casts),
        build=lambda process: PLAN.build(process, size, replicas=replicas_of_sizes(sizes)),
        codec=Codec(PLAN.layers),
        network=network or parse_network("unit"),
        faults=faults,
        application=run,
        recorder=recorder,
        random=Random(1),
    )
    simulation.start()
    for at, origin, destinations in casts:
        simulation.cast_at(round(at * UNIT), Message(message_id(origin, 0), destinations, b""))
    simulation.run(1000 * UNIT, 1_000_000)
    return run


# What a message costs.


@pytest.mark.parametrize("sizes", [(1, 1), (3, 1), (3, 3), (3, 2, 1), (5, 5)])
def test_alone_all_deliver_three_delays_after_the_client_has_begun(sizes: tuple[int, ...]) -> None:
    """The message, the timestamps of the leaders, the acknowledgements: a delay for each write."""
    everyone = tuple(range(sum(sizes)))
    run = simulate(sizes, [(0.0, len(everyone), everyone)])
    assert set(run.times.values()) == {3.0}
    assert len(run.times) == len(everyone)


def test_a_message_to_one_group_is_delivered_by_followers_after_two_delays() -> None:
    """The leader of three learns from a completion, one delay later, that a majority has it."""
    run = simulate((3,), [(0.0, 3, (0, 1, 2))])
    assert [run.times[process, message_id(3, 0)] for process in range(3)] == [3.0, 2.0, 2.0]


EVERYONE = (0, 1, 2, 3)
BEFORE = [(0.0, 4, (1, 2, 3)), (1.0, 5, EVERYONE)]
"""The second group has given a timestamp already, so that it gives the second message 2."""


def test_concurrently_it_takes_less_than_four_delays_if_all_writes_take_one() -> None:
    """A leader stops giving lower timestamps when it hears of the higher one, after two delays;
    what it gave one just before is delivered two delays later."""
    a, b = message_id(5, 0), message_id(6, 0)
    run = simulate((1, 3), [*BEFORE, (1.99, 6, EVERYONE)])
    assert run.times[0, a] == run.times[0, b] == pytest.approx(1.0 + 3.99)
    assert run.times[1, a] == 1.0 + 3


def test_concurrently_it_takes_less_than_five_delays_if_some_writes_take_less() -> None:
    """The later message comes to that leader at once, and to the other with the timestamp."""
    network = parse_network("unit", {(6, 0): 1})
    run = simulate((1, 3), [*BEFORE, (2.99, 6, EVERYONE)], network)
    assert run.times[0, message_id(5, 0)] == pytest.approx(1.0 + 4.99)


@pytest.mark.parametrize("sizes", [(1, 1), (3, 1), (3, 3), (3, 2, 1)])
def test_writes_of_a_clients_message_to_several_groups(sizes: tuple[int, ...]) -> None:
    k, groups = sum(sizes), len(sizes)
    bench = bench_of(*sizes)
    bench.cast(k, tuple(range(k)))
    written = settle(bench)
    assert written == {
        "Multicast": k,
        **({"Propose": k - groups, "Completion": k - groups} if k > groups else {}),
        "Timestamp": (groups - 1) * k,
        "Ack": k * (k - 1),
    }
    between = sum(written.values()) - written["Multicast"] - written["Completion"]
    assert between == k * (k - 1) + groups * (k - 1)


@pytest.mark.parametrize("n", [1, 3, 5])
def test_writes_of_a_clients_message_to_one_group(n: int) -> None:
    bench = bench_of(n, 1)
    bench.cast(n + 1, tuple(range(n)))
    written = settle(bench)
    assert written["Propose"] == written["Completion"] == n - 1
    assert written["Ack"] == (n - 1) * (n - 2)
    assert sum(written.values()) == n + 2 * (n - 1) + (n - 1) * (n - 2)


def test_only_destinations_take_part() -> None:
    """Genuine: a process of another group is told nothing, not even when a leader crashes."""
    bench = bench_of(3, 1, 1)
    bench.cast(5, (0, 1, 2, 3))
    for process in (0, 1, 2):
        bench.deliver(5, process)
    bench.crash(0)
    for process in (1, 2, 3, 4):
        bench.suspect(process, 0)
    while bench.channels:
        assert all(4 not in channel for channel in bench.channels)
        bench.deliver(*next(iter(bench.channels)))
    assert [len(order) for order in bench.delivered] == [0, 1, 1, 1, 0]


# Permissions.


def test_only_the_leader_may_write_and_the_owner_is_asked_on_arrival() -> None:
    bench = bench_of(3)
    bench.cast(0, (0, 1, 2))
    bench.suspect(1, 0)
    bench.deliver(1, 2)  # 2 permits 1 to write
    bench.deliver(0, 2)
    bench.deliver(0, 2)  # what 0 wrote before that
    assert layer(bench, 2).known.pending[message_id(0, 0)].ts == {}
    (failed, *_) = bench.channels[2, 0]
    assert innermost(failed.packet) == Completion(2, 0)


def test_a_completion_takes_no_step_of_the_targets_processor() -> None:
    """A leader delivers what it wrote into the memory of followers that are busy; and a write
    costs the processor of the target nothing."""
    network = parse_network("unit:receive=50ms,send=1us")
    run = simulate((3,), [(0.0, 3, (0, 1, 2))], network)
    assert run.times[0, message_id(3, 0)] == pytest.approx(3.0, abs=0.02)
    slow = parse_network("unit:send=500us")
    busy = simulate((3,), [(0.0, 3, (0, 1, 2)), (0.0, 4, (0, 1, 2))], slow)
    # The leader writes twice to each follower, of which each writes twice to the other.
    assert busy.times[0, message_id(3, 0)] == 1 + 1.0 + 1.0 + 0.5
    assert busy.times[0, message_id(4, 0)] == pytest.approx(1 + 2.0 + 1.0 + 0.5, abs=0.6)


def test_who_is_refused_asks_for_the_reason_and_follows() -> None:
    """The new leader crashed before it asked the old one, which hears of it from who refuses."""
    bench = bench_of(3)
    bench.suspect(1, 0)
    bench.remove(1, 0)
    bench.deliver(1, 2)
    bench.crash(1)
    for process in (0, 2):
        bench.suspect(process, 1)
    bench.cast(0, (0, 1, 2))
    settle(bench)
    assert len(bench.delivered[0]) == len(bench.delivered[2]) == 1
    assert layer(bench, 0).ballot == layer(bench, 2).ballot == stamp(2, 0)


def test_old_writes_of_a_new_leader_do_not_land() -> None:
    """Who hears from a third process of the ballot of 1 permits nobody before 1 itself has asked:
    what 1 wrote in an earlier ballot may still be on its way, and would come before that."""
    top = layer(bench_of(3), 2)
    top.on_packet(0, Deny(stamp(5, 1)))
    _, permit = top.effects
    assert isinstance(permit, Send)
    assert (permit.to, permit.packet) == ((2,), Permit(2))


def test_a_completion_that_nobody_waits_for_is_refused() -> None:
    memory = ProtectedMemory(bench_of(3).hosts[0].stack.layers[1].context)
    with pytest.raises(PeerError, match="Completion"):
        memory.on_packet(1, Completion(0, 1))


def test_who_writes_is_who_sends() -> None:
    memory = ProtectedMemory(bench_of(3).hosts[0].stack.layers[1].context)
    with pytest.raises(PeerError, match="Write"):
        memory.on_packet(1, Write(Message(message_id(2, 0), (0,), b"")))


def test_the_memory_tells_of_each_target() -> None:
    context = bench_of(3).hosts[0].stack.layers[1].context
    memory = ProtectedMemory(context)
    propose = Propose(Message(message_id(3, 0), (0, 1, 2), b""), stamp(0, 0), 1)
    memory.on_cast(Message(message_id(0, 7), (1, 2), propose))
    memory.effects.clear()
    memory.on_packet(2, Completion(7, 0))
    memory.on_packet(1, Completion(7, 1))
    told = memory.effects
    assert [type(notice) for notice in told] == [WriteCompleted] * 2
    assert [(n.process, n.landed) for n in told if isinstance(n, WriteCompleted)] == [
        (2, False), (1, True)
    ]  # fmt: skip
    assert not memory.posted


# Leaders that change.


def test_after_a_crash_of_the_leader_all_deliver_four_delays_after_the_suspicion() -> None:
    """To ask, to be granted, to tell the state and the timestamps, and to acknowledge them."""
    run = simulate((3, 1), [(0.0, 4, EVERYONE)], crashes=[(0.5, 0)])
    assert run.last(message_id(4, 0)) == pytest.approx(0.5 + 1 + 4)


def test_what_followers_have_they_deliver_without_the_leader() -> None:
    run = simulate((3, 1), [(0.0, 4, EVERYONE)], crashes=[(1.5, 0)])
    assert run.last(message_id(4, 0)) == 3


def test_no_message_has_two_final_timestamps() -> None:
    """The new leader reads the timestamp in one of the followers, and gives a no other one."""
    bench = bench_of(3, 1)
    m = bench.cast(4, (0, 1, 2, 3))
    bench.cast(0, (0, 1, 2))
    for channel in ((4, 0), (0, 2), (0, 2), (0, 2)):
        bench.deliver(*channel)
    bench.crash(0)
    for process in (1, 2):
        bench.suspect(process, 0)
    settle(bench)
    finals = {layer(bench, process).known.done[m.id].final for process in (1, 2, 3)}
    assert finals == {stamp(2, 0)}
    assert broken_promise(bench) == ""


def test_who_is_trusted_again_follows_whoever_leads() -> None:
    bench = bench_of(3)
    bench.suspect(1, 0)
    settle(bench)
    bench.trust(1, 0)
    bench.cast(0, (0, 1, 2))
    settle(bench)
    assert layer(bench, 0).ballot == layer(bench, 2).ballot == stamp(1, 1)
    assert len(bench.delivered[0]) == 1


def test_with_half_of_a_group_gone_nothing_is_delivered_rather_than_wrongly() -> None:
    bench = bench_of(2, 1)
    bench.cast(3, (0, 1, 2))
    bench.crash(1)
    for process in (0, 2):
        bench.suspect(process, 1)
    settle(bench)
    assert bench.delivered == [[], [], []]


def test_a_process_that_writes_to_some_destinations_and_crashes_blocks_nobody() -> None:
    """Timestamps travel with their message: all that hear of the one have the other."""
    bench = bench_of(3, 1)
    bench.cast(2, (0, 1, 2, 3))
    for target in (0, 1):
        bench.remove(2, target)
    bench.crash(2)
    bench.cast(4, (0, 1, 2, 3))
    settle(bench)
    assert [len(order) for order in bench.delivered] == [2, 2, 0, 2]
    assert broken_promise(bench) == ""


# Why the prototype's way is not ours.


def as_the_prototype() -> StackPlan:
    """Who has the timestamp of its own group acknowledges that one, and delivers what majorities
    have acknowledged so, group by group; nobody asks what the members of its group know."""
    ramcast = loaded_anew("ramcast", "timestamp_vectors")

    class Prototype(ramcast.RamCast):  # type: ignore[name-defined, misc]
        def acknowledge(self, m: Any, entry: Any, silently: Any = ()) -> None:
            own = entry.ts.get(self.group[0])
            ramcast.GroupTimestamps.vector = lambda _, groups: ramcast.flat(*own) if own else ()
            ramcast.RamCast.acknowledge(self, m, entry, silently)

        def on_packet(self, sender: int, packet: Any) -> None:
            if isinstance(packet, ramcast.Ack):
                self.handle(sender, packet)
                self.end_turn()
            else:
                ramcast.RamCast.on_packet(self, sender, packet)

        def deliver_final(self: Any) -> None:
            self.floor = max(self.floor, self.clock)
            ramcast.RamCast.deliver_final(self)

    def check_acks(self: Any, groups: Any, own: Any) -> None:
        finals = []
        for group in groups:
            for V in sorted(self.acks):
                if V[1] in group and ramcast.is_majority(group, {V[1]} | self.acks[V]):
                    finals.append(ramcast.stamp(V[2], group[0]))
                    if group == own:
                        self.decided = ramcast.stamp(V[0], V[1])
        if len(finals) == len(groups):
            self.final = max(finals)

    ramcast.GroupTimestamps.check_acks = check_acks
    below = PROTOCOLS["leader"], PROTOCOLS["protected-memory"]
    return StackPlan.of(*below, Protocol("prototype", Prototype, "", ""))


@pytest.mark.parametrize(("plan", "broken"), [(as_the_prototype(), True), (PLAN, False)])
def test_a_leader_that_delivers_what_its_group_cannot_know_breaks_the_order(
    plan: StackPlan, broken: bool
) -> None:
    """Leader 0 delivers a with the timestamp 2 of the other group, of which its followers have
    not heard, and crashes. The new leader gives b the timestamp 2 of its own group, which is lower:
    1 and 2 deliver b before a, and 0 has delivered a without b."""
    bench = bench_of(3, 1, plan=plan)
    bench.cast(4, (3,))
    bench.deliver(4, 3)
    bench.cast(5, (0, 1, 2, 3))
    for channel in ((5, 3), (5, 0)):
        bench.deliver(*channel)
    for follower in (1, 2):
        bench.deliver(0, follower)
        while (follower, 0) in bench.channels:
            bench.deliver(follower, 0)
    while (0, 3) in bench.channels or (3, 0) in bench.channels:
        bench.deliver(*next(c for c in bench.channels if c in ((0, 3), (3, 0))))
    assert [len(bench.delivered[0])] == [int(broken)]
    bench.crash(0)
    for process in (1, 2):
        bench.suspect(process, 0)
    bench.cast(6, (0, 1, 2))
    for channel in ((1, 2), (2, 1), (2, 1)):
        while channel in bench.channels:
            bench.deliver(*channel)
    bench.deliver(6, 1)
    settle(bench)
    assert broken_promise(bench) == (ORDER if broken else "")


# Where it runs.


def test_it_is_refused_without_an_oracle_or_without_memory() -> None:
    for stack, missing in (
        ("leader ramcast", "protected-memory"),
        ("protected-memory ramcast", ""),
    ):
        with pytest.raises(UsageError, match=f"missing .*{missing}"):
            run_scenario(Scenario(stack, 3, 1, "random:1", "unit", 0.1, groups="1x3"))


def test_crashes_and_wrong_suspicions_in_the_simulator() -> None:
    """With the world's suspicions, and with heartbeats."""
    faults = Faults(
        crashes=("0@20ms", "4@30ms"), suspicions=("1:0@5ms-9ms", "5:3@7ms-8ms"), detection="5ms"
    )
    for stack in (STACK, f"heartbeat {STACK}"):
        collector = Collector()
        scenario = Scenario(
            stack, 6, 6, "random:2", "lan", 0.08, drain=0.2, faults=faults, groups="2x3"
        )
        outcome = run_scenario(scenario, collector)
        assert outcome.answered == outcome.multicasts > 100
        history = collector.history("test", 6, complete=True)
        delivered: list[list[int]] = [[] for _ in range(6)]
        rows = history.deliveries
        for process, m in zip(rows.process.tolist(), rows.message.tolist(), strict=True):
            delivered[process].append(m)
        assert delivered[1] == delivered[2] == delivered[3] == delivered[5]
        assert delivered[0] == delivered[1][: len(delivered[0])]
