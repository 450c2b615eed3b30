"""Section 5 of the paper on atomic broadcast over VCube, in small systems and plain Python."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexgroup.experiments.experiment import PAPER, SMALL
from flexgroup.experiments.findings import Findings, Point
from flexgroup.experiments.vcube import (
    AFTER_DETECTION,
    AFTER_DETECTION_EXPERIMENT,
    FAULT_FREE,
    found_out,
    p1_at_once,
    source_after_its_copies,
)
from flexgroup.experiments.vcube_claims import (
    ALL2ALL,
    AS_IN_THE_PAPER,
    HIERARCHICAL,
    STACKS,
    crosses,
    saves_on_average,
)
from flexgroup.trace.collector import Collector
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario, run_scenario

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_FAULTS = Faults()


def one_broadcast(
    stack: str, size: int, faults: Faults = NO_FAULTS, casts: str = "0@0s"
) -> tuple[Counter[str], float]:
    """How many packets of each type, and milliseconds until all that are up have delivered."""
    collector = Collector()
    scenario = Scenario(stack, size, 0, "broadcast", AS_IN_THE_PAPER, faults=faults, casts=casts)
    outcome = run_scenario(scenario, collector)
    assert outcome.complete
    assert outcome.deliveries >= size - len(faults.crashes)
    history = collector.history(outcome.run, size, outcome.complete)
    sends = history.sends
    latency = int(history.deliveries.time.max() - history.multicasts.time.min())
    return Counter(sends.packet[code] for code in sends.packet_code.tolist()), latency / 1e6


sizes = pytest.mark.parametrize("size", [8, 16, 32])


@sizes
def test_3a_both_algorithms_send_as_many_messages_as_can_be_counted(size: int) -> None:
    hierarchical, _ = one_broadcast(HIERARCHICAL, size)
    all2all, _ = one_broadcast(ALL2ALL, size)
    assert hierarchical == {"Tree": 2 * (size**2 - 1) / 3, "Ack": 2 * (size**2 - 1) / 3}
    assert all2all == {"Tree": size * (size - 1), "Ack": size * (size - 1)}


@sizes
def test_3b_all2all_sends_twice_to_all_and_waits_for_the_last_confirmation(size: int) -> None:
    """0.2 for each process: the origin\'s copies, then those of the last to hear of it."""
    _, latency = one_broadcast(ALL2ALL, size)
    assert latency == pytest.approx(0.2 * (size - 1) + 2.8)


@sizes
@pytest.mark.parametrize("stack", STACKS)
def test_4b_a_crash_is_waited_for_until_it_is_found_out(stack: str, size: int) -> None:
    for faults in (source_after_its_copies(stack, size), p1_at_once(stack, size)):
        _, latency = one_broadcast(stack, size, faults)
        assert latency > 34
        assert latency < 34 + one_broadcast(stack, size)[1] + 5


@sizes
def test_5b_all2all_is_faster_by_two_copies_when_a_process_is_known_to_be_gone(size: int) -> None:
    _, before = one_broadcast(ALL2ALL, size)
    _, after = one_broadcast(ALL2ALL, size, p1_at_once(ALL2ALL, size), AFTER_DETECTION)
    assert before - after == pytest.approx(0.2)


def test_a_crash_is_found_out_by_the_first_test_after_it() -> None:
    """Tests are every 30 ms, with a time-out of 4 ms."""
    assert found_out("1", 0) == Faults(crashes=("1@0us",), detection="34000us")
    assert found_out("0", 1_000) == Faults(crashes=("0@1000us",), detection="33000us")
    assert found_out("0", 102_300) == Faults(crashes=("0@102300us",), detection="21700us")


def test_the_scale_of_the_paper_is_8_to_1024_processes() -> None:
    powers = [8, 16, 32, 64, 128, 256, 512, 1024]
    for experiment in (FAULT_FREE, AFTER_DETECTION_EXPERIMENT):
        assert sorted({run.processes for run in experiment.scenarios(PAPER)}) == powers
        assert sorted({run.processes for run in experiment.scenarios(SMALL)}) == powers[:4]


def invented(latencies: dict[int, tuple[float, float]], volumes: tuple[float, float]) -> Findings:
    """Latencies of both algorithms by size, and their messages."""
    points = [
        Point(
            stack, "broadcast", size, 0, AS_IN_THE_PAPER, "", latency, 1.0, 1.0, 1.0, 1.0, volume,
            0.0, 0.0, 0,
        )
        for size, both in latencies.items()
        for stack, latency, volume in zip(STACKS, both, volumes, strict=True)
    ]  # fmt: skip
    return Findings(points, network=AS_IN_THE_PAPER)


@pytest.mark.parametrize(
    ("latencies", "appears"),
    [
        ({64: (2, 1), 128: (1, 2)}, True),
        ({64: (1, 2), 128: (1, 2)}, False),
        ({64: (2, 1), 128: (2, 1)}, False),
    ],
)
def test_a_crossing_is_where_it_is_claimed_or_not_at_all(
    latencies: dict[int, tuple[float, float]], appears: bool
) -> None:
    holds, evidence = crosses(invented(latencies, (1, 1)), 128)
    assert holds is appears
    assert evidence.startswith("64: ")


@pytest.mark.parametrize(("volume", "appears"), [(79, True), (68, False), (120, False)])
def test_an_average_is_compared_with_the_papers(volume: float, appears: bool) -> None:
    holds, evidence = saves_on_average(invented({8: (1, 1)}, (volume, 100)), 0.2145)
    assert holds is appears
    assert "in the paper 21.45%" in evidence


def test_packets_by_type_and_latency_come_through_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    from flexgroup.metrics.tables import with_packet_types
    from flexgroup.pipeline.measure import Measured
    from flexgroup.pipeline.reading.trace_set import open_trace_set

    free = Scenario(ALL2ALL, 8, 0, "broadcast", AS_IN_THE_PAPER, casts="0@0s")
    gone = replace(free, faults=p1_at_once(ALL2ALL, 8), casts=AFTER_DETECTION)
    for scenario in (free, gone):
        record_scenario(scenario, tmp_path)
    measured = Measured(open_trace_set(spark, str(tmp_path)))
    columns = ["crashed", "packets_Tree", "packets_Ack", "latency_last_mean"]
    measures = with_packet_types(measured.measures, measured.packets).select(columns)
    without, with_a_crash = sorted(tuple(row.values()) for row in measures.to_pylist())
    assert without == (0, 56, 56, pytest.approx(0.0042))
    assert with_a_crash == (1, 42, 42, pytest.approx(0.0040))
