"""Safe delivery on top of every order: whatever anybody delivers, all that live on deliver."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexgroup.core.precedence import is_acyclic
from flexgroup.properties.catalogue import check
from flexgroup.properties.verdict import Outcome
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.trace.collector import Collector
from flexgroup.trace.history import History
from flexgroup.worlds.simulator.fault_plans import Faults as SimulatedFaults
from flexgroup.worlds.simulator.scenario import Scenario, run_scenario

from .member_schedules import Casts, Ended, Faults, run

STACKS = [
    "safe",
    "fifo safe",
    "causal safe",
    "causal-rst safe",
    "atomic safe",
    "skeen safe",
    "df safe",
    "fifo dcc safe",
    "vcube-atomic safe",
    "reliable safe",
    "reliable atomic safe",
]

SURVIVE_CRASHES = ["reliable safe", "reliable causal safe", "all2all-atomic safe"]
"""Below `safe` lies a layer that delivers at all correct processes what it delivers at one."""

DELIVERED = ("integrity", "validity", "agreement")


@st.composite
def systems(draw: st.DrawFn) -> Casts:
    processes = draw(st.integers(1, 4))
    members = st.integers(0, processes - 1)
    sets = st.sets(members, min_size=1).map(sorted).map(tuple)
    return Casts(processes, tuple(draw(st.lists(st.tuples(members, sets), max_size=6))))


@pytest.mark.parametrize("stack", STACKS)
@settings(max_examples=40, deadline=None)
@given(casts=systems(), schedule=st.integers(0, 1000))
def test_every_schedule_ends_with_all_delivered(stack: str, casts: Casts, schedule: int) -> None:
    ended = run(stack, casts, Random(schedule), fifo=False, hurry=0.2)
    ended.refute(*DELIVERED)
    below = parse_stack(stack.removesuffix(" safe"))
    if any("total" in {given.value for given in layer.GIVES} for layer in below.layers):
        ended.refute("acyclic order")


def crash_schedule(stack: str, seed: int) -> Ended:
    """Broadcasts of random members, of whom two crash, over channels that may lose packets."""
    random = Random(seed)
    everybody = tuple(range(random.randint(3, 4)))
    origins = [random.choice(everybody) for _ in range(random.randint(2, 6))]
    casts = Casts(len(everybody), tuple((origin, everybody) for origin in origins))
    losses = 3 if stack.startswith("reliable") else 0
    return run(stack, casts, random, fifo=False, faults=Faults(crashes=2, losses=losses))


def not_uniform(ended: Ended) -> list[str]:
    """What was delivered anywhere, and not by all of its destinations that live on."""
    bench = ended.bench
    orders = [[m.id for m in order] for order in bench.delivered]
    return [
        f"{m} at {process}"
        for m in bench.messages.values()
        if any(m.id in order for order in orders)
        for process in m.destinations
        if process not in bench.crashed and m.id not in orders[process]
    ]


@pytest.mark.parametrize("stack", SURVIVE_CRASHES)
def test_200_random_schedules_with_crashes_are_uniform(stack: str) -> None:
    for seed in range(200):
        ended = crash_schedule(stack, seed)
        ended.refute(*DELIVERED)
        assert not not_uniform(ended), "\n".join(ended.script)
        if "atomic" in stack:
            assert is_acyclic([[m.id for m in order] for order in ended.bench.delivered])


def test_without_it_such_schedules_are_not_uniform() -> None:
    """The test above would pass as well if crashes never mattered."""
    assert any(not_uniform(crash_schedule("reliable", seed)) for seed in range(200))


# In the simulator, where time passes.


def simulated(scenario: Scenario) -> History:
    collector = Collector()
    outcome = run_scenario(scenario, collector)
    assert outcome.complete
    assert outcome.multicasts > 50
    return collector.history(outcome.run, scenario.processes, outcome.complete)


@pytest.mark.parametrize("stack", ["reliable safe", "reliable causal safe"])
@pytest.mark.parametrize("seed", range(3))
def test_all_promises_are_kept_when_a_process_crashes(stack: str, seed: int) -> None:
    lossy = "lan:loss=0.05,duplication=0.05,fifo=no"
    crash = SimulatedFaults(crashes=("3@200ms",), detection="20ms")
    scenario = Scenario(
        stack, 4, 6, "random:3", lossy, duration=0.4, seed=seed, rate=80.0, drain=3.0, faults=crash
    )
    promises = parse_stack(stack).promises(frozenset())
    assert "uniform agreement" in promises
    history = simulated(scenario)
    for verdict in check(history, promises):
        assert verdict.outcome == Outcome.HOLDS, str(verdict)


def test_under_load_acknowledgements_ride_on_messages() -> None:
    history = simulated(Scenario("safe", 3, 3, "broadcast", "lan", duration=0.05, rate=20000.0))
    packets = [history.sends.packet[code] for code in history.sends.packet_code.tolist()]
    assert packets.count("Ack") < 0.7 * packets.count("Data")
