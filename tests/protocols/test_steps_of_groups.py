"""Steps and packets of the protocols between groups of replicas, as traces tell them."""

from __future__ import annotations

import pytest

from flexgroup.metrics.costs import costs
from flexgroup.trace.collector import Collector
from flexgroup.worlds.simulator.scenario import Scenario, parse_groups, run_scenario

SEVERAL = "random:2"
N = 3

ALONE = {
    "leader paxos": (4, 3, 3, 3 * (N - 1)),
    "leader paxos skeen-cft": (7, 6, 6, 12 * (N - 1) + 2 * N),
    "leader paxos df-cft": (7, 6, 3, 9 * (N - 1) + 2 * N),
    "leader paxos dcc-cft": (7, 6, 3, 6 * (N - 1) + N),
    "leader paxos ft-abcast": (7, 6, 3, 12 * (N - 1) + 2 * N * N),
    "leader white-box": (4, 3, 3, 4 * (2 * N - 1) + 2 * N - 2),
    "leader primcast": (3, 3, 3, 2 * N * (2 * N - 1)),
    "leader protected-memory ramcast": (3, 3, 3, (2 * N + 2) * (2 * N - 1)),
}
"""Steps to the last delivery, to the first in the slowest group and to the first, and packets, of a
message to two groups of three, or one with `paxos`: docs/protocols/README.md has the formulas."""


def measured(
    stack: str, clients: int, network: str, duration: float
) -> tuple[float, float, float, float]:
    groups = "1x3" if stack == "leader paxos" else "2x3"
    workload = "random:1" if stack == "leader paxos" else SEVERAL
    processes = 3 * int(groups[0])
    scenario = Scenario(stack, processes, clients, workload, network, duration, groups=groups)
    collector = Collector()
    outcome = run_scenario(scenario, collector)
    history = collector.history(outcome.run, processes, outcome.complete)
    found = costs(history, parse_groups(groups))
    return found.steps, found.steps_group, found.steps_first, found.volume


@pytest.mark.parametrize("stack", ALONE)
def test_a_message_alone(stack: str) -> None:
    found = measured(stack, 1, "unit", 0.02)
    assert found == pytest.approx(ALONE[stack])


@pytest.mark.parametrize("stack", [name for name in ALONE if name.endswith(("-cft", "paxos"))])
def test_messages_that_share_packets_have_their_steps_each(stack: str) -> None:
    """Batches make packets fewer, and no way shorter."""
    *steps, packets = measured(stack, 16, "lan", 0.005)
    assert packets < 0.9 * ALONE[stack][3]
    for several, alone in zip(steps, ALONE[stack], strict=False):
        assert alone - 0.5 < several < alone + 1
