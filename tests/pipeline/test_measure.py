"""Measuring on Spark: the same figures as in plain Python, on runs of every sort.

All runs are in one trace set, measured in one job: with fast and slow messages, with crashes, cut
short, without a message, and one that another system recorded.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flexgroup.metrics.costs import costs
from flexgroup.trace import schema
from flexgroup.trace.reader import read_runs
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario

from .measure_reference import SECOND, Reference, percentile, trimmed_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flexgroup.pipeline.read import TraceSet

Measures = dict[str, Any]

BASE = Scenario("skeen", 4, 6, "tpcc", duration=0.008)
SCENARIOS = {
    "skeen": BASE,
    "skeen repeated": replace(BASE, seed=2),
    "df": replace(BASE, stack="df", workload="tpcc@0.2"),
    "dcc": replace(BASE, stack="dcc", workload="partitioned:2x2@0.3"),
    "dcc/rv": replace(BASE, stack="dcc/rv", workload="random:N", clients=12),
    "crash": replace(BASE, workload="random:2", faults=Faults(crashes=("1@4ms",))),
    "df crash": replace(BASE, stack="df", workload="random:N", faults=Faults(crashes=("2@5ms",))),
    "cut": replace(BASE, stack="dcc", workload="random:2", drain=0.0),
    "lossy": replace(BASE, stack="best-effort", network="lan:loss=0.2,duplication=0.1"),
    "empty": replace(BASE, rate=0.001),
}
RUNS = sorted(SCENARIOS)
FOREIGN = "theirs"
HISTOGRAM_STEP = 1 / 1000


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("traces")
    for scenario in SCENARIOS.values():
        record_scenario(scenario, directory)
    write_foreign(directory)
    return directory


def write_foreign(directory: Path) -> None:
    """Six messages, one each microsecond of a clock that started long ago, delivered 500 ns later
    at process 1 and 700 ns later at process 2; no packets."""
    start = 1_700_000_000 * SECOND
    multicasts = [
        {"process": 0, "step": n, "time": start + n * 1000, "seq": n, "destinations": [1, 2]}
        for n in range(6)
    ]
    deliveries = [
        {"process": process, "step": n, "time": start + n * 1000 + delay, "seq": n}
        for n in range(6)
        for process, delay in ((1, 500), (2, 700))
    ]
    for kind, rows in ((schema.MULTICAST, multicasts), (schema.DELIVER, deliveries)):
        whole = [{"run": FOREIGN, "origin": 0, **row} for row in rows]
        pq.write_table(
            pa.Table.from_pylist(whole, schema.EVENT_COLUMNS),
            directory / "events" / f"event={kind}" / f"{FOREIGN}.parquet",
        )
    description = {
        **schema.RUN_DEFAULTS,
        "run": FOREIGN,
        "stack": "their protocol",
        "processes": 3,
        "schema_version": schema.VERSION,
    }
    table = pa.Table.from_pylist([description], schema.RUN_COLUMNS)
    pq.write_table(table, directory / "runs" / f"{FOREIGN}.parquet")


@pytest.fixture(scope="module")
def traces(spark: SparkSession, directory: Path) -> TraceSet:
    from flexgroup.pipeline.read import open_trace_set

    return open_trace_set(spark, str(directory))


@pytest.fixture(scope="module")
def measured(traces: TraceSet) -> dict[str, Measures]:
    from flexgroup.pipeline.measure import measure_runs

    return {row.run: row.asDict() for row in measure_runs(traces).collect()}


@pytest.fixture(scope="module")
def references(directory: Path) -> dict[str, Reference]:
    return {
        run.run: Reference(directory, run) for run in read_runs(directory) if run.run != FOREIGN
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


def test_rates_steps_and_packets_are_those_of_plain_python_exactly(both: Both) -> None:
    row, reference = both
    expected = costs(reference.history)
    found = {name: row[name] for name in ("genuine", "fast", "steps", "volume", "header_bytes")}
    assert found == {
        "genuine": expected.genuine_rate,
        "fast": expected.fast_rate,
        "steps": expected.steps,
        "volume": expected.volume,
        "header_bytes": expected.header_bytes,
    }


def test_messages_are_counted(both: Both) -> None:
    row, reference = both
    messages = reference.messages
    assert row["messages"] == len(messages)
    assert row["deliveries"] == sum(len(reference.delivered[message]) for message in messages)
    assert row["unanswered"] == sum(not reference.is_answered(message) for message in messages)


def test_throughput_counts_answered_messages_in_the_measured_period(both: Both) -> None:
    row, reference = both
    assert row["throughput"] == reference.throughput()


@pytest.mark.parametrize("kind", ["first", "last", "delivery"])
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


def test_what_is_large_is_read_twice_at_most(
    traces: TraceSet, capsys: pytest.CaptureFixture[str]
) -> None:
    from flexgroup.pipeline.measure import measure_runs

    # Or else long paths are cut short in the plan.
    traces.spark.conf.set("spark.sql.maxMetadataStringLength", 10_000)
    measure_runs(traces).explain()
    traces.spark.conf.unset("spark.sql.maxMetadataStringLength")
    plan = capsys.readouterr().out
    assert plan.count("event=send]") == plan.count("event=receive]") == 2
    assert plan.count("event=deliver]") == plan.count("event=multicast]") == 3


def test_packets_by_type(traces: TraceSet, references: dict[str, Reference]) -> None:
    from flexgroup.pipeline.measure import by_packet

    run = SCENARIOS["dcc"].run
    found = {
        (row.sender, row.packet): (row.packets, row.header_bytes, row.payload_bytes)
        for row in by_packet(traces).where(f"run = '{run}'").collect()
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
