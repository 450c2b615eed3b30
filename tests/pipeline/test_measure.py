"""Measuring on Spark: the same figures as in plain Python, on runs of every sort.

All runs are in one trace set, measured in both ways: each by a task that reads its files, and all
by a plan of column expressions.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from flexgroup.metrics.costs import COST_METRICS, costs
from flexgroup.metrics.durations import STATISTICS
from flexgroup.metrics.sums import PACKETS
from flexgroup.pipeline.reading.local_files import MOST_EVENTS
from flexgroup.trace import schema
from flexgroup.trace.reader import read_runs

from .measure_reference import SECOND, Reference, percentile, trimmed_mean
from .measured_runs import FOREIGN, PATCHY, PLANNED, SCENARIOS, record_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flexgroup.pipeline.measure import Measured
    from flexgroup.pipeline.reading.trace_set import TraceSet

Measures = dict[str, Any]

RUNS = sorted(SCENARIOS)
HISTOGRAM_STEP = 1 / 1000


WAYS = {"from files": MOST_EVENTS, "by the plan": 0}
"""How many events a run may have to be read by one task."""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("traces")
    record_all(directory)
    return directory


@pytest.fixture(scope="module")
def traces(spark: SparkSession, directory: Path) -> TraceSet:
    from flexgroup.pipeline.reading.trace_set import open_trace_set

    return open_trace_set(spark, str(directory))


@pytest.fixture(scope="module")
def each_way(traces: TraceSet) -> dict[str, Measured]:
    from flexgroup.pipeline.measure import Measured

    return {way: Measured(traces, most_events) for way, most_events in WAYS.items()}


@pytest.fixture(params=WAYS)
def measured(request: pytest.FixtureRequest, each_way: dict[str, Measured]) -> dict[str, Measures]:
    return {row["run"]: row for row in each_way[request.param].measures.to_pylist()}


@pytest.fixture(scope="module")
def references(directory: Path) -> dict[str, Reference]:
    simulated = {scenario.run for scenario in SCENARIOS.values()}
    return {
        run.run: Reference(directory, run) for run in read_runs(directory) if run.run in simulated
    }


@pytest.fixture(params=RUNS)
def both(
    request: pytest.FixtureRequest,
    measured: dict[str, Measures],
    references: dict[str, Reference],
) -> tuple[Measures, Reference]:
    run = SCENARIOS[request.param].run
    return measured[run], references[run]


Both = tuple[Measures, Reference]


def test_rates_steps_and_packets_are_as_defined(both: Both) -> None:
    row, reference = both
    expected = reference.costs()
    assert {name: row[name] for name in expected} == expected


def test_costs_in_memory_are_the_same(references: dict[str, Reference]) -> None:
    for reference in references.values():
        found = asdict(costs(reference.history, reference.run.replicas))
        expected = reference.costs()
        assert found == {field: expected[name] for field, name in COST_METRICS.items()}


def test_messages_are_counted(both: Both) -> None:
    row, reference = both
    messages = reference.messages
    assert row["messages"] == len(messages)
    assert row["deliveries"] == sum(len(reference.delivered[message]) for message in messages)
    assert row["unanswered"] == sum(not reference.is_answered(message) for message in messages)


def test_throughput_counts_answered_messages_in_the_measured_period(both: Both) -> None:
    row, reference = both
    assert row["throughput"] == reference.throughput()


@pytest.mark.parametrize("kind", ["first", "group", "last", "delivery"])
def test_latencies(both: Both, kind: str) -> None:
    row, reference = both
    latencies = getattr(reference, f"latencies_{kind}")()
    found = {name: row[f"latency_{kind}_{name}"] for name in ("mean", "trimmed", "max")}
    if not latencies:
        assert set(found.values()) == {None}
        return
    assert found["mean"] == pytest.approx(sum(latencies) / len(latencies) / SECOND)
    assert found["max"] == max(latencies) / SECOND
    trimmed = trimmed_mean(latencies) / SECOND
    assert found["trimmed"] == pytest.approx(trimmed, rel=HISTOGRAM_STEP)
    for percent in (50, 95, 99):
        exact = percentile(latencies, percent)
        told = round(row[f"latency_{kind}_p{percent}"] * SECOND)
        assert told in latencies
        assert exact <= told <= exact * (1 + HISTOGRAM_STEP)


def test_local_messages_alone_and_convoyed(both: Both) -> None:
    row, reference = both
    alone, convoyed = reference.local_latencies()
    for name, latencies in (("local_alone", alone), ("local_convoyed", convoyed)):
        mean = sum(latencies) / len(latencies) / SECOND if latencies else None
        assert row[name] == (mean if mean is None else pytest.approx(mean))
    share = len(convoyed) / len(alone + convoyed) if alone + convoyed else None
    assert row["convoyed"] == share


def test_waiting_in_queues(both: Both) -> None:
    row, reference = both
    queued = reference.queued()
    if not queued:
        assert row["queue_mean"] is row["queue_max"] is row["queued"] is None
        return
    assert row["queue_mean"] == pytest.approx(sum(queued) / len(queued) / SECOND)
    assert row["queue_max"] == max(queued) / SECOND
    assert row["queued"] == sum(1 for wait in queued if wait > 0) / len(queued)


def test_gaps_between_deliveries(both: Both) -> None:
    row, reference = both
    for found, expected in zip(
        (row["gap_same"], row["gap_elsewhere"]), reference.gaps(), strict=True
    ):
        assert found == (None if expected is None else pytest.approx(expected, abs=1e-9))


def test_busy_processes(both: Both) -> None:
    row, reference = both
    if not reference.messages:
        assert row["busy"] is row["busiest"] is None
        return
    shares = reference.busy_shares()
    assert row["busy"] == pytest.approx(sum(shares) / len(shares))
    assert row["busiest"] == pytest.approx(max(shares))


def test_the_runs_show_what_they_are_there_for(measured: dict[str, Measures]) -> None:
    rows = {name: measured[scenario.run] for name, scenario in SCENARIOS.items()}
    assert 0 < rows["dcc"]["fast"] < 1
    assert 0 < rows["dcc"]["genuine"] < 1
    assert all(0 < rows[name]["convoyed"] < 1 for name in ("skeen", "df", "dcc"))
    assert all(rows[name]["unanswered"] > 0 for name in ("df crash", "cut", "lossy"))
    assert rows["cut"]["outcome"] == schema.CUT
    assert rows["empty"]["messages"] == 0
    assert rows["dcc"]["queued"] > 0
    for name in ("groups", "paxos", "groups crash"):
        row = rows[name]
        assert row["latency_first_mean"] <= row["latency_group_mean"] < row["latency_last_mean"]
    assert rows["groups"]["latency_first_mean"] < rows["groups"]["latency_group_mean"]
    assert rows["paxos"]["steps_group"] < rows["paxos"]["steps"]
    # Lamport 2001: REQUEST, ACCEPT, ACCEPTED at the leader, CHOSEN at the others, 3(n - 1) packets.
    alone = rows["paxos alone"]
    assert (alone["steps_first"], alone["steps_group"], alone["steps"]) == (3, 3, 4)
    assert alone["volume"] == 3 * (3 - 1)
    assert [alone[f"latency_{name}_mean"] for name in ("first", "last")] == [0.003, 0.004]
    assert rows["groups crash"]["gap_same"] is not None
    assert rows["groups crash"]["detection"] == 0.001
    # Whole groups crash, and some members of others.
    assert rows["groups crash"]["unanswered"] > 0
    # Both copies of a twin deliver, and neither counts; what goes to liars alone is not answered.
    assert rows["twin"]["deliveries"] == 7 * rows["twin"]["messages"] > 0
    assert rows["twin"]["unanswered"] == 0
    assert 0 < rows["liar"]["unanswered"] < rows["liar"]["messages"]


def test_without_groups_of_replicas_every_process_is_one(measured: dict[str, Measures]) -> None:
    for name, scenario in SCENARIOS.items():
        row = measured[scenario.run]
        if scenario.groups:
            continue
        assert row["steps_group"] == row["steps"], name
        for statistic in STATISTICS:
            assert row[f"latency_group_{statistic}"] == row[f"latency_last_{statistic}"], name


def test_a_run_of_another_system(measured: dict[str, Measures]) -> None:
    """The period is that from its first to its last multicast: the first two are warm-up. What
    only packets would tell is unknown."""
    row = measured[FOREIGN]
    assert (row["messages"], row["deliveries"], row["unanswered"]) == (6, 12, 0)
    assert row["latency_first_mean"] == pytest.approx(500 / SECOND)
    assert row["latency_last_max"] == pytest.approx(700 / SECOND)
    assert row["throughput"] == pytest.approx(4 / (0.8 * 5001) * SECOND)
    for name in ("genuine", "fast", "volume", "volume_bytes", "header_bytes", "busy", "queue_mean"):
        assert row[name] is None


def test_a_run_without_clients_is_measured_whole(measured: dict[str, Measures]) -> None:
    """Five broadcasts, none of them dropped as warm-up: over 7 ms and the last of the latencies."""
    row = measured[PLANNED.run]
    assert (row["messages"], row["unanswered"]) == (5, 0)
    length = 5 / row["throughput"]
    assert 0.007 < length < 0.007 + 2 * row["latency_last_max"]


@pytest.mark.parametrize("table", ["measures", "points", "packets"])
def test_both_ways_come_to_the_same_to_the_last_bit(
    each_way: dict[str, Measured], table: str
) -> None:
    """On all runs, also of other systems, with gaps, and plain nonsense."""
    from_files, planned = (getattr(each_way[way], table) for way in WAYS)
    assert from_files.schema == planned.schema
    for one, other in zip(from_files.to_pylist(), planned.to_pylist(), strict=True):
        assert one == other


def test_the_gaps_are_seen(measured: dict[str, Measures]) -> None:
    """Otherwise the comparison would say little about them."""
    whole, patchy = measured[SCENARIOS["dcc"].run], measured[PATCHY]
    assert patchy["messages"] == whole["messages"]
    for name in ("volume", "volume_bytes", "queued", "fast", "steps"):
        assert 0 < patchy[name] != whole[name]
    assert patchy["unanswered"] > whole["unanswered"]
    assert patchy["latency_first_mean"] < whole["latency_first_mean"]


def test_runs_that_fit_into_a_task_are_one_job_of_one_stage(traces: TraceSet) -> None:
    from flexgroup.pipeline.measure import Measured

    context = traces.spark.sparkContext
    context.setJobGroup("measuring", "of runs that fit into a task")
    measured = Measured(traces)
    assert measured.points.num_rows < measured.measures.num_rows < measured.packets.num_rows
    tracker = context.statusTracker()
    (job,) = tracker.getJobIdsForGroup("measuring")
    told = tracker.getJobInfo(job)
    assert told is not None
    assert len(told.stageIds) == 1


def test_runs_of_all_sizes_are_measured_together(
    traces: TraceSet, each_way: dict[str, Measured]
) -> None:
    from flexgroup.pipeline.measure import Measured

    assert traces.files is not None
    sizes = sorted(traces.files.runs_to_read().values())
    some = Measured(traces, sizes[len(sizes) // 2])
    assert some.packets == each_way["from files"].packets


def test_what_is_large_is_read_twice_at_most(
    traces: TraceSet, capsys: pytest.CaptureFixture[str]
) -> None:
    from flexgroup.pipeline.measure.spark_sums import sums_of_runs

    # Or else long paths are cut short in the plan.
    traces.spark.conf.set("spark.sql.maxMetadataStringLength", 10_000)
    sums_of_runs(traces).explain()
    traces.spark.conf.unset("spark.sql.maxMetadataStringLength")
    plan = capsys.readouterr().out
    assert plan.count("event=send]") == plan.count("event=receive]") == 2
    assert plan.count("event=multicast]") == 3
    assert plan.count("event=deliver]") == 4


def test_packets_by_type(each_way: dict[str, Measured], references: dict[str, Reference]) -> None:
    run = SCENARIOS["dcc"].run
    found = {
        (row["sender"], row["packet"]): tuple(row[name] for name in PACKETS.names[3:])
        for row in each_way["from files"].packets.to_pylist()
        if row["run"] == run
    }
    sends = references[run].history.sends
    expected = {}
    for code, packet in enumerate(sends.packet):
        for sender, chosen in (("process", sends.process < 4), ("client", sends.process >= 4)):
            rows = chosen & (sends.packet_code == code)
            if rows.any():
                sizes = int(sends.header_bytes[rows].sum()), int(sends.payload_bytes[rows].sum())
                expected[sender, packet] = (int(rows.sum()), *sizes)
    assert found == expected
    assert len(found) == 2
