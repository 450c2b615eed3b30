"""Which violations get their events kept, and that the events are the same whoever reads them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from flexgroup.pipeline.in_memory.evidence import SHOWN, Violated, chosen
from flexgroup.pipeline.reading.trace_set import open_trace_set
from flexgroup.pipeline.verify.evidence import evidence_of
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario

from ..trace.recorded import SCENARIO, record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_each_property_of_each_stack_comes_before_a_second_example_of_another() -> None:
    many = [Violated(f"a-{number:03}", "validity", "[]") for number in range(2 * SHOWN)]
    rare = [Violated("b", "agreement", "[]"), Violated("b", "validity", "[]")]
    stacks = {verdict.run: verdict.run[0] for verdict in many + rare}
    shown = chosen(many + rare, stacks)
    assert shown[:3] == [many[0], *rare]
    assert shown[3:] == many[1 : SHOWN - 2]


def test_events_are_the_same_from_files_and_through_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    runs = [record(tmp_path, replace(SCENARIO, seed=seed)) for seed in (1, 2)]
    client = SCENARIO.processes
    witness = f'[{{"message": "{client}.0"}}, {{"message": "{client + 1}.1"}}]'
    violated = [Violated(run, name, witness) for run in runs for name in ("validity", "agreement")]
    traces = open_trace_set(spark, str(tmp_path))
    from_files, through_spark = (
        sorted(map(repr, evidence_of(found, violated).toArrow().to_pylist()))
        for found in (traces, replace(traces, files=None))
    )
    assert from_files == through_spark
    assert len(from_files) > 2 * len(violated)


def test_faults_suspicions_and_timers_belong_to_it(spark: SparkSession, tmp_path: Path) -> None:
    faults = Faults(crashes=("2@1ms",), suspicions=("0:1@1ms-2ms",))
    scenario = Scenario(
        "reliable", 3, 0, "broadcast", "lan:loss=0.3", 0.003, faults=faults, casts="0@500us"
    )
    run = record(tmp_path, scenario)
    violated = [Violated(run, "validity", '[{"message": "0.0"}]')]
    traces = open_trace_set(spark, str(tmp_path))
    from_files, through_spark = (
        evidence_of(found, violated).toArrow().to_pylist()
        for found in (traces, replace(traces, files=None))
    )
    assert sorted(map(repr, from_files)) == sorted(map(repr, through_spark))
    kinds = Counter(row["event"] for row in from_files)
    assert kinds["crash"] == 1
    assert kinds["suspect"] >= 1
    assert kinds["timer"] >= 1
    spans: dict[int, list[int]] = {}
    for row in from_files:
        if row["origin"] is not None:
            spans.setdefault(row["process"], []).append(row["step"])
    for row in from_files:
        if row["event"] == "timer":
            assert min(spans[row["process"]]) <= row["step"] <= max(spans[row["process"]])
