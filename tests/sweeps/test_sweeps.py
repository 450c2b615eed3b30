"""A sweep on Spark has the rows that the local pool has, and goes on where it was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from flexgroup.core.errors import FlexGroupError, UsageError
from flexgroup.pipeline.spark.java import FAST_START
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.sweeps.schedules import Schedules
from flexgroup.sweeps.systems import AllSystems, long_ones_first
from flexgroup.sweeps.table import ROWS, Row, fill_table
from flexgroup.sweeps.walks import Walks
from flexgroup.virtual.campaign import draw_all, judge_all
from flexgroup.worlds.explorer.all_systems import SystemTotals, explore_all, systems
from flexgroup.worlds.explorer.explorer import SearchLimits
from flexgroup.worlds.explorer.random_walks import RandomWalks, WalkOptions, WalkTotals
from flexgroup.worlds.explorer.result import ExplorationResult
from flexgroup.worlds.explorer.scope import from_clients
from flexgroup.worlds.explorer.search_setup import SearchOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SYSTEMS = AllSystems("dcc-published", 4, 2, True, SearchOptions(), SearchLimits())
PIECES = 5

CYCLE = from_clients(4, (0, 2), (0, 2), (0, 3), (2, 3))


class NoSparkError(Exception):
    """Spark is not there."""


def no_spark() -> SparkSession:
    raise NoSparkError


def told(totals: SystemTotals) -> dict[str, Any]:
    return {**totals.to_json(), "seconds": None, "verdicts": totals.verdicts}


def without_times(rows: list[Row]) -> list[Row]:
    return [{**row, "seconds": None} for row in rows]


def test_systems_are_those_of_the_local_pool(spark: SparkSession, tmp_path: Path) -> None:
    plan = parse_stack(SYSTEMS.stack)
    filled = fill_table(lambda: spark, SYSTEMS, tmp_path / "out")
    assert (filled.found, filled.done) == (0, PIECES)
    found = explore_all(plan, 4, 2, elsewhere=SYSTEMS.outcomes(filled.rows))
    assert told(found) == told(explore_all(plan, 4, 2, workers=2))
    table = pq.read_table(tmp_path / "out" / ROWS)
    assert sorted(table["system"].to_pylist()) == list(range(66))


def test_what_is_finished_needs_no_spark(spark: SparkSession, tmp_path: Path) -> None:
    first = fill_table(lambda: spark, SYSTEMS, tmp_path)
    again = fill_table(no_spark, SYSTEMS, tmp_path)
    assert (again.found, again.done, again.rows) == (PIECES, 0, first.rows)
    (tmp_path / ROWS / "000003.parquet").unlink()
    with pytest.raises(NoSparkError):
        fill_table(no_spark, SYSTEMS, tmp_path)
    mended = fill_table(lambda: spark, SYSTEMS, tmp_path)
    assert (mended.found, mended.done) == (PIECES - 1, 1)
    assert without_times(mended.rows) == without_times(first.rows)


def test_systems_of_many_packets_begin_first() -> None:
    scopes = list(systems(3, 2))
    order = long_ones_first(scopes)
    assert sorted(order) == list(range(len(scopes)))
    assert [cast.destinations for cast in scopes[order[0]].casts] == [(0, 1, 2), (0, 1, 2)]


KILLED_IN = 3
"""The piece that does not end before the driver is killed."""

DRIVER = f"""
import os, signal, sys, threading, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from flexgroup.pipeline.spark.session import start
from flexgroup.sweeps.systems import AllSystems
from flexgroup.sweeps.table import fill_table
from test_sweeps import SYSTEMS

class Stuck(AllSystems):
    def begin(self):
        rows_of = super().begin()
        return lambda piece: signal.pause() if piece == {KILLED_IN} else rows_of(piece)

def dies(share):
    if share >= {KILLED_IN / PIECES}:
        os.kill(os.getpid(), signal.SIGKILL)

stuck = Stuck(*[getattr(SYSTEMS, name) for name in SYSTEMS.__dataclass_fields__])
settings = {{"spark.ui.enabled": "false", "spark.driver.extraJavaOptions": {FAST_START!r}}}
fill_table(lambda: start("local[1]", settings=settings).spark, stuck, Path(sys.argv[1]), dies)
"""


@pytest.mark.slow
def test_a_sweep_that_was_killed_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    driver = subprocess.run(
        [sys.executable, "-c", DRIVER, str(tmp_path / "killed")],
        stderr=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert driver.returncode == -signal.SIGKILL
    assert len(os.listdir(tmp_path / "killed" / ROWS)) == KILLED_IN
    resumed = fill_table(lambda: spark, SYSTEMS, tmp_path / "killed")
    assert (resumed.found, resumed.done) == (KILLED_IN, PIECES - KILLED_IN)
    whole = fill_table(lambda: spark, SYSTEMS, tmp_path / "whole")
    assert without_times(resumed.rows) == without_times(whole.rows)


def walked(
    elsewhere: Callable[[WalkOptions, list[range]], Any] | None, walks: int = 300, depth: int = 0
) -> ExplorationResult:
    taken = RandomWalks(
        parse_stack("dcc-published"), CYCLE, walks, seed=4, depth=depth, elsewhere=elsewhere
    )
    return replace(taken.take(), seconds=0.0, local_states=0)


@pytest.mark.parametrize("depth", [0, 2])
def test_walks_find_what_they_find_here(depth: int, spark: SparkSession, tmp_path: Path) -> None:
    """Until the first that breaks something, and nothing of those behind it."""

    def on_spark(how: WalkOptions, todo: list[range]) -> list[WalkTotals]:
        sweep = Walks("dcc-published", CYCLE, how, tuple(todo))
        return list(sweep.totals(fill_table(lambda: spark, sweep, tmp_path).rows))

    found = walked(on_spark, 2000, depth)
    assert found == walked(None, 2000, depth)
    assert found.broken == {"acyclic order"}


def test_schedules_of_servers_are_judged_as_here(spark: SparkSession, tmp_path: Path) -> None:
    sweep = Schedules(tuple(draw_all(range(2), ["skeen", "df"], ["dense"])), 0)
    judged = list(sweep.judged(fill_table(lambda: spark, sweep, tmp_path).rows))
    expected = list(judge_all(sweep.drawn, 1, 0))
    assert [replace(one, cpu_seconds=0.0) for one in judged] == [
        replace(one, cpu_seconds=0.0, schedule=judged[place].schedule)
        for place, one in enumerate(expected)
    ]
    assert [str(one.schedule) for one in judged] == [str(one.schedule) for one in expected]


def test_another_sweep_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    fill_table(lambda: spark, SYSTEMS, tmp_path)
    with pytest.raises(UsageError, match="holds something else, with messages 2 and not 3"):
        fill_table(no_spark, replace(SYSTEMS, messages=3), tmp_path)
    (tmp_path / "work.json").write_text("no description")
    with pytest.raises(UsageError, match="does not describe"):
        fill_table(no_spark, SYSTEMS, tmp_path)


def test_a_job_that_fails_says_why_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    nowhere = replace(SYSTEMS, protocols=("of_nobody",))
    with pytest.raises(FlexGroupError, match=r"a job of the sweep failed: No module.*of_nobody"):
        fill_table(lambda: spark, nowhere, tmp_path)
