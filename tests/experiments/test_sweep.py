"""A sweep leaves the traces that running each scenario here would, and runs none of them twice."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexgroup.core.errors import FlexGroupError
from flexgroup.experiments.sweep import (
    expected_work,
    long_ones_first,
    sweep,
)
from flexgroup.sweeps.tasks import MAKING
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCENARIOS = [
    Scenario(stack, 4, clients, "random:2", duration=0.002, seed=seed)
    for stack in ("skeen", "dcc")
    for clients in (1, 4)
    for seed in (1, 2)
]


def files(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_a_scenario_survives_its_journey_to_the_executor() -> None:
    scenario = Scenario(
        "fifo dcc", 5, 3, "tpcc", "lan:fifo=no", 0.25, 7, 10.0, 1.5, Faults(("1@1s",), ("1@2s",))
    )
    there = pickle.loads(pickle.dumps(scenario))
    assert there == scenario
    assert there.run == scenario.run


def test_the_executors_write_what_each_scenario_alone_writes(
    spark: SparkSession, tmp_path: Path
) -> None:
    swept = sweep(spark, SCENARIOS, tmp_path / "swept")
    assert (swept.found, len(swept.outcomes)) == (0, len(SCENARIOS))
    alone = {record_scenario(scenario, tmp_path / "alone") for scenario in SCENARIOS}
    assert set(swept.outcomes) == alone
    assert files(tmp_path / "swept") == files(tmp_path / "alone")


def test_finished_runs_are_kept_and_what_a_killed_run_left_is_swept_away(
    spark: SparkSession, tmp_path: Path
) -> None:
    finished, unfinished = SCENARIOS[:6], SCENARIOS[6:]
    for scenario in finished:
        record_scenario(scenario, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    half = tmp_path / MAKING / "a-run" / "events" / "event=send" / "_a-run.parquet"
    half.parent.mkdir(parents=True)
    half.write_bytes(b"PAR1 and then the power failed")
    shares: list[float] = []
    swept = sweep(spark, SCENARIOS, tmp_path, shares.append)
    assert swept.found == len(finished)
    assert {outcome.run for outcome in swept.outcomes} == {s.run for s in unfinished}
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert not (tmp_path / MAKING).exists()
    assert shares[0] >= len(finished) / len(SCENARIOS)
    assert sweep(spark, SCENARIOS, tmp_path).outcomes == ()


def test_runs_that_take_long_begin_first() -> None:
    work = [expected_work(scenario) for scenario in long_ones_first(SCENARIOS)]
    assert work == sorted(work, reverse=True)
    assert work[0] > work[-1]


def test_planned_multicasts_are_work_too() -> None:
    one, each = (Scenario("skeen", 8, 0, casts=casts) for casts in ("0@0s", "all@0s"))
    assert 0 < expected_work(one) < expected_work(each)


def test_a_run_that_fails_says_why_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    impossible = Scenario("dcc", 4, 1, "random:9", duration=0.001)
    with pytest.raises(FlexGroupError, match=r"a run of the sweep failed: .*random:9") as caught:
        sweep(spark, [impossible], tmp_path)
    assert len(str(caught.value).splitlines()) == 1
    assert not list(tmp_path.rglob("runs/*.parquet"))
