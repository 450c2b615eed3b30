"""How long groups of replicas stand still from the suspicion of a leader on, counted in delays.

Every replica multicasts all the time. The leader of a group crashes, and is suspected thirty or a
hundred delays later: what is multicast meanwhile piles up. To send a packet, or to take one in,
costs a hundredth of a delay. So a recovery that has a packet for each of these messages takes the
longer the more of them there are, and one that has few packets does not.
"""

from __future__ import annotations

from functools import cache

import pytest

from flexgroup.trace.collector import Collector
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, run_scenario

ONE_GROUP = "1x5"
TWO_GROUPS = "2x5"
PAUSE = {ONE_GROUP: 1, TWO_GROUPS: 5}
"""How many delays are between two messages of a replica."""

IN_FEW_PACKETS = [
    ("leader paxos", ONE_GROUP),
    ("leader paxos skeen-cft", ONE_GROUP),
    ("leader paxos dcc-cft", ONE_GROUP),
    ("leader paxos ft-abcast", ONE_GROUP),
    ("leader white-box", ONE_GROUP),
    ("leader white-box", TWO_GROUPS),
    ("leader primcast", ONE_GROUP),
    ("leader primcast", TWO_GROUPS),
    ("leader protected-memory ramcast", ONE_GROUP),
    ("leader protected-memory ramcast", TWO_GROUPS),
]
"""Where a few packets have all that piled up."""
OVER_LOGS = [("leader paxos dcc-cft", TWO_GROUPS)]
"""Where what a log has in a batch goes to the next group one by one."""

LEADER = 0
CRASH = 20
SOON, LATE = 30, 100
"""After how many delays the leader is suspected."""

TEN_ROUND_TRIPS = 20
DELAY = 1_000_000
"""In nanoseconds."""


@cache
def recovery(stack: str, groups: str, detection: int) -> tuple[float, float]:
    """Delays from the suspicion on until each of the others in the group has delivered something,
    and until they have delivered all that was multicast before by replicas that are up."""
    processes = int(groups[0]) * 5
    until = CRASH + detection + 40
    scenario = Scenario(
        stack,
        processes,
        0,
        f"random:{groups[0]}",
        "unit:send=10us,receive=10us",
        until / 1000,
        faults=Faults(crashes=(f"{LEADER}@{CRASH}ms",), detection=f"{detection}ms"),
        casts=" ".join(f"all@{at}ms" for at in range(1, until, PAUSE[groups])),
        groups=groups,
    )
    collector = Collector()
    outcome = run_scenario(scenario, collector)
    history = collector.history(outcome.run, processes, outcome.complete)
    suspected = (CRASH + detection) * DELAY
    multicasts, deliveries = history.multicasts, history.deliveries
    piled_up = {
        message
        for process, message, time in zip(
            multicasts.process.tolist(),
            multicasts.message.tolist(),
            multicasts.time.tolist(),
            strict=True,
        )
        if time <= suspected and process != LEADER
    }
    first, last = [], []
    for member in range(LEADER + 1, 5):
        is_here = deliveries.process == member
        times = deliveries.time[is_here].tolist()
        given = dict(zip(deliveries.message[is_here].tolist(), times, strict=True))
        assert piled_up <= given.keys()
        first.append(min(time for time in times if time > suspected))
        last.append(max(given[message] for message in piled_up))
    return (max(first) - suspected) / DELAY, (max(last) - suspected) / DELAY


@pytest.mark.parametrize(("stack", "groups"), IN_FEW_PACKETS + OVER_LOGS)
@pytest.mark.parametrize("detection", [SOON, LATE])
def test_ten_round_trips_are_enough(stack: str, groups: str, detection: int) -> None:
    first, everything = recovery(stack, groups, detection)
    assert 4 < first <= everything <= TEN_ROUND_TRIPS


@pytest.mark.parametrize(("stack", "groups"), IN_FEW_PACKETS)
def test_it_takes_no_longer_the_more_has_piled_up(stack: str, groups: str) -> None:
    soon, late = recovery(stack, groups, SOON), recovery(stack, groups, LATE)
    assert late[0] < soon[0] + 1
    assert late[1] < soon[1] + 1
