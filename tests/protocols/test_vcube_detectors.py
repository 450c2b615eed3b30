"""VCube's diagnosis and heartbeats: how soon crashes are known, and what it costs.

Duarte, Bona and Ruoso 2014 bound the latency by log2(n)^2 of their rounds, which test one cluster
each, and the tests by n log2(n) in log2(n) of their rounds. Rounds here test all clusters: at most
log2(n) rounds, and n log2(n) tests in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import pytest

from flexgroup.core.layer import Layer
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.protocols.heartbeat import Heartbeat
from flexgroup.protocols.parts.detection import INTERVAL, TIMEOUT
from flexgroup.protocols.parts.hypercube import dimension
from flexgroup.protocols.vcube_detector import VCubeDetector
from flexgroup.worlds.bench import Bench

from .broadcast_runs import run


def detector(layers: list[Layer]) -> VCubeDetector | Heartbeat:
    layer = layers[0]
    assert isinstance(layer, VCubeDetector | Heartbeat)
    return layer


def suspicions(
    stack: str, n: int, crashes: Sequence[tuple[float, int]], rounds: int
) -> list[set[int]]:
    """Whom each process that is up suspects when that many rounds are over."""
    until = rounds * INTERVAL + TIMEOUT + 0.5
    outcome = run(stack, n, casts=(), crashes=crashes, until=until)
    crashed = {process for _, process in crashes}
    return [
        detector(layers).suspected
        for process, layers in enumerate(outcome.layers)
        if process not in crashed
    ]


@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_a_crash_is_known_to_all_after_log2_n_rounds_and_not_always_sooner(n: int) -> None:
    late = 0
    for crashed in range(n):
        crashes = [(1.0, crashed)]
        assert all(s == {crashed} for s in suspicions("vcube-detector", n, crashes, dimension(n)))
        sooner = suspicions("vcube-detector", n, crashes, dimension(n) - 1)
        late += sum(s != {crashed} for s in sooner)
    assert late > 0


def test_two_crashes_are_known_to_all_after_log2_n_rounds() -> None:
    for pair in combinations(range(8), 2):
        crashes = [(1.0, pair[0]), (1.0, pair[1])]
        assert all(s == set(pair) for s in suspicions("vcube-detector", 8, crashes, 3)), pair


@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_without_faults_each_process_tests_one_of_each_cluster(n: int) -> None:
    outcome = run("vcube-detector", n, casts=(), until=INTERVAL + 10.0)
    assert outcome.sent["Test"] == outcome.sent["Answer"] == n * dimension(n)


@pytest.mark.parametrize("crashed", [(1,), (0, 3), (1, 2, 4), (4, 5, 6, 7), (1, 2, 3, 4, 5, 6, 7)])
def test_never_more_than_n_log2_n_tests_in_a_round(crashed: tuple[int, ...]) -> None:
    crashes = [(1.0, process) for process in crashed]
    counts = [
        run("vcube-detector", 8, (), crashes=crashes, until=rounds * INTERVAL + 10.0).sent["Test"]
        for rounds in range(7)
    ]
    per_round = [after - before for before, after in pairwise(counts)]
    assert all(0 < tests <= 8 * 3 for tests in per_round)


def test_heartbeats_tell_all_of_a_crash_in_the_next_round() -> None:
    assert suspicions("heartbeat", 8, [(1.0, 3)], rounds=1) == [{3}] * 7


def test_heartbeats_cost_n_times_n_minus_1_packets_a_round() -> None:
    assert run("heartbeat", 8, casts=(), until=INTERVAL + 10.0).sent["Alive"] == 8 * 7


@pytest.mark.parametrize(("stack", "slowness"), [("vcube-detector", 3), ("heartbeat", 6)])
def test_suspicions_that_were_wrong_are_taken_back_and_end(stack: str, slowness: int) -> None:
    """Packets take longer than the time-out: after a few rounds it has grown enough."""
    network = f"unit:delay={slowness}ms"
    early = run(stack, 4, casts=(), network=network, until=INTERVAL + TIMEOUT + 0.5)
    assert all(detector(layers).suspected for layers in early.layers)
    outcome = run(stack, 4, casts=(), network=network, until=20.0 * INTERVAL)
    assert all(detector(layers).patience > TIMEOUT for layers in outcome.layers)
    assert not any(detector(layers).suspected for layers in outcome.layers)


@pytest.mark.parametrize("stack", ["vcube-detector", "heartbeat"])
def test_a_recovered_process_is_trusted_again(stack: str) -> None:
    bench = Bench(parse_stack(stack), 2)
    name = "round" if stack == "vcube-detector" else "beat"

    def go(process: int) -> None:
        bench.end_timer(process, 0, name)
        while bench.channels:
            bench.deliver(*next(iter(bench.channels)))
        bench.end_timer(process, 0, "time-out")

    bench.crash(1)
    go(0)
    assert detector(bench.hosts[0].stack.layers).suspected == {1}
    bench.recover(1)
    go(1)
    go(0)
    assert not detector(bench.hosts[0].stack.layers).suspected
