"""The constants of a machine are learnt from what servers say they did."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.experiments.calibration import (
    COSTS,
    COUNTERS,
    learn,
    micro_runs,
    read_calibration,
    write_calibration,
)
from flexgroup.experiments.dcc_network import chapter
from flexgroup.experiments.experiment import PAPER, SMALL, RealRun
from flexgroup.experiments.real_runs import Counted
from flexgroup.load.measurement import Load
from flexgroup.worlds.simulator.networks import parse_network

TRUE = dict(zip(COSTS, (40e-6, 30e-6, 12e-6, 18e-6, 90e-9, 25e-6, 35e-6), strict=True))
CLIENT, FRAME, DELAY = 5e-6, 15e-6, 70e-6
IDLE = 10e-3


def a_run(real: RealRun, random: Random) -> Counted:
    """What a run would have cost with the true constants."""
    servers = []
    for _ in range(real.processes):
        did = {name: float(random.randrange(500, 5_000)) for name in COUNTERS}
        did["packet_bytes"] *= 100
        did["cpu_seconds"] = IDLE + sum(
            TRUE[cost] * did[name] for cost, name in zip(COSTS, COUNTERS, strict=True)
        )
        servers.append(did)
    frames = random.randrange(2_000, 9_000)
    messages = random.randrange(1_000, 9_000)
    deliveries = sum(did["deliveries"] for did in servers)
    one = sum(TRUE[name] for name in ("read", "write", "cast", "deliver"))
    trip = one + 2 * (CLIENT + FRAME + DELAY)
    load = Load(completed=1, latencies=Counter({round(trip * 1e6): 1}))
    client_cpu = CLIENT * (messages + deliveries) + FRAME * frames
    return Counted(load, 1.0, messages, frames, client_cpu, tuple(servers))


def test_constants_are_found_again() -> None:
    random = Random(5)
    runs = micro_runs()
    calibration = learn({real: a_run(real, random) for real in runs})
    found = calibration.constants
    for name in COSTS:
        assert getattr(found, name) == pytest.approx(TRUE[name], rel=0.01)
    assert (found.client, found.frame) == pytest.approx((CLIENT, FRAME), rel=0.01)
    assert found.delay == pytest.approx(DELAY, rel=0.01)
    assert all(each.explained == pytest.approx(each.cpu) for each in calibration.explained)
    network = parse_network(found.network)
    assert network.read_cost == pytest.approx(TRUE["read"] * 1e9, rel=0.01)


def test_a_calibration_is_read_as_it_was_written(tmp_path: Path) -> None:
    random = Random(6)
    runs = micro_runs()
    calibration = learn({real: a_run(real, random) for real in runs})
    write_calibration(calibration, tmp_path / "machine.json")
    assert read_calibration(tmp_path / "machine.json") == calibration


def test_a_machine_that_does_nothing_teaches_nothing() -> None:
    real = micro_runs()[0]
    idle = dict.fromkeys([*COUNTERS, "cpu_seconds"], 0.0)
    with pytest.raises(UsageError, match="the servers were hardly busy"):
        learn({real: Counted(Load(), 1.0, 0, 0, 0.0, (idle,))})


@pytest.mark.parametrize("scale", [SMALL, PAPER])
def test_every_point_is_measured_and_predicted_and_none_is_calibrated_on(scale: str) -> None:
    experiment = chapter(None)
    real = {
        (run.stack, run.processes, run.clients, run.workload, run.seed)
        for run in experiment.real[scale]
    }
    simulated = {
        (run.stack, run.processes, run.clients, run.workload, run.seed)
        for run in experiment.scenarios(scale)
    }
    assert real == simulated
    learnt = {(run.stack, run.processes, run.workload) for run in micro_runs()}
    assert not learnt & {(stack, n, workload) for stack, n, _, workload, _ in real}
