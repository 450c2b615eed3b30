"""A search level by level from files has the counts, verdicts and shortest counterexamples of a
search in memory, wherever it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.protocols.catalogue import parse_stack
from flexgroup.sweeps.large_search import COMMITTED, NO_ORDER, LargeSearch, parts_on_spark
from flexgroup.sweeps.search_part import VISITED, PartTotals, Question
from flexgroup.worlds.explorer.explorer import SearchLimits, explore
from flexgroup.worlds.explorer.result import ExplorationResult
from flexgroup.worlds.explorer.scope import Bounds, PlannedCast, Scope, from_clients
from flexgroup.worlds.explorer.search_setup import SearchOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FULL = SearchOptions(reduce=False, symmetry=False)
SYMMETRY = SearchOptions(reduce=False)
BOTH = SearchOptions()

CHAIN = from_clients(4, (0, 2), (0, 2), (1, 2, 3), (1, 2, 3))
CYCLE = from_clients(4, (0, 2), (0, 2), (0, 3), (2, 3))
CRASH = Scope(3, (PlannedCast(3, (0, 1)), PlannedCast(4, (0, 1))), bounds=Bounds(crashes=1))
NAMED_FAULTS = Scope(
    3,
    (PlannedCast(1, (0, 1, 2)),),
    bounds=Bounds(crashes=1, suspicions=1),
    crashing=(0,),
    suspecting=((1, 0),),
    replicas=((0, 1, 2),),
)


def here(parts: Sequence[int], work: Callable[[int], PartTotals], folder: Path) -> list[PartTotals]:
    """Do the parts of a level in this process."""
    return [work(part) for part in parts]


def large(stack: str, scope: Scope, options: SearchOptions, folder: Path) -> LargeSearch:
    return LargeSearch(Question(stack, scope, options, parts=3), folder, here, keep_going=True)


def in_memory(stack: str, scope: Scope, options: SearchOptions) -> ExplorationResult:
    return explore(parse_stack(stack), scope, options, keep_going=True)


def told(result: ExplorationResult) -> dict[str, object]:
    """What has to be equal, however the search was made."""
    broken = {violation.name: violation.steps for violation in result.violations}
    return {
        "line": result.last_line(),
        "transitions": result.transitions,
        "ends": (result.terminals, result.complete, result.terminal_orders),
        "orders": result.seen_orders,
        "broken": broken,
        "notes": result.notes,
        "passes": result.passes,
        "tables": (result.local_states, result.exchanges),
    }


@pytest.mark.parametrize(
    ("stack", "scope", "options"),
    [
        ("dcc", CHAIN, FULL),
        ("dcc", CHAIN, BOTH),
        ("dcc-published", CYCLE, SYMMETRY),
        ("dcc-published", CYCLE, BOTH),
        ("skeen", from_clients(3, (0, 1), (1, 2)), BOTH),
        ("best-effort", CRASH, SYMMETRY),
        ("leader paxos", NAMED_FAULTS, SYMMETRY),
    ],
)
def test_counts_verdicts_and_counterexamples_are_those_in_memory(
    stack: str, scope: Scope, options: SearchOptions, tmp_path: Path
) -> None:
    result = large(stack, scope, options, tmp_path / "search").run()
    assert told(result) == told(in_memory(stack, scope, options))


def test_where_states_come_back_the_order_is_not_reduced(tmp_path: Path) -> None:
    """To tell which states must be searched fully then, one process has to know all."""
    result = large("leader paxos", NAMED_FAULTS, BOTH, tmp_path / "search").run()
    expected = in_memory("leader paxos", NAMED_FAULTS, SYMMETRY)
    assert told(result) == {**told(expected), "notes": (NO_ORDER,)}


def test_the_shortest_violation_ends_the_search(tmp_path: Path) -> None:
    search = replace(large("dcc-published", CYCLE, SYMMETRY, tmp_path / "search"), keep_going=False)
    (found,) = search.run().violations
    (expected,) = explore(parse_stack("dcc-published"), CYCLE, SYMMETRY).violations
    assert (found.name, found.steps, found.shortest) == (expected.name, expected.steps, True)


def test_a_search_that_reached_a_bound_goes_on(tmp_path: Path) -> None:
    search = large("dcc", CHAIN, FULL, tmp_path / "search")
    limits = SearchLimits(depth=4)
    stopped = replace(search, limits=limits).run()
    expected = explore(parse_stack("dcc"), CHAIN, FULL, limits, keep_going=True)
    assert stopped.last_line() == expected.last_line()
    assert stopped.frontier == expected.frontier > 0
    assert told(search.run()) == told(in_memory("dcc", CHAIN, FULL))


def test_a_search_that_has_ended_is_not_made_again(tmp_path: Path) -> None:
    search = large("dcc", CHAIN, BOTH, tmp_path / "search")
    first = search.run()

    def nobody(*arguments: object) -> list[PartTotals]:
        raise AssertionError("nothing is left to do")

    assert told(replace(search, do_parts=nobody).run()) == told(first)


class PowerFailureError(Exception):
    """The driver is gone, at this moment."""


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("parts_done", [0, 1])
def test_a_search_that_ended_within_a_level_ends_as_one_that_did_not(
    level: int, parts_done: int, tmp_path: Path
) -> None:
    search = large("dcc-published", CYCLE, BOTH, tmp_path / "search")

    def fails(
        parts: Sequence[int], work: Callable[[int], PartTotals], folder: Path
    ) -> list[PartTotals]:
        if folder.name == f"level-{level:05}":
            here(parts[:parts_done], work, folder)
            raise PowerFailureError
        return here(parts, work, folder)

    with pytest.raises(PowerFailureError):
        replace(search, do_parts=fails).run()
    committed = list((tmp_path / "search").glob(f"*/level-*/{COMMITTED}"))
    assert len(committed) == level
    assert told(search.run()) == told(in_memory("dcc-published", CYCLE, BOTH))
    counted = {str(path.parent.parent) for path in tmp_path.rglob(VISITED)}
    assert counted == {str(path.parent) for path in tmp_path.rglob(COMMITTED)}


def test_a_folder_with_another_search_is_left_alone(tmp_path: Path) -> None:
    large("dcc", CHAIN, BOTH, tmp_path / "search").run()
    for other in (
        large("dcc-published", CHAIN, BOTH, tmp_path / "search"),
        large("dcc", CYCLE, BOTH, tmp_path / "search"),
        large("dcc", CHAIN, FULL, tmp_path / "search"),
    ):
        with pytest.raises(UsageError, match="holds something else, with"):
            other.run()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear friend")
    with pytest.raises(UsageError, match="is not empty"):
        large("dcc", CHAIN, BOTH, tmp_path / "mine").run()
    assert os.listdir(tmp_path / "mine") == ["letter.txt"]


KILLED_IN = "level-00004"

DRIVER = f"""
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from dataclasses import replace
from test_large_search import CYCLE, BOTH, large, here

def dies(parts, work, folder):
    if folder.name == {KILLED_IN!r}:
        here(parts[:1], work, folder)
        os.kill(os.getpid(), signal.SIGKILL)
    return here(parts, work, folder)

replace(large("dcc-published", CYCLE, BOTH, Path(sys.argv[1])), do_parts=dies).run()
"""


@pytest.mark.slow
def test_on_spark_what_a_killed_driver_has_left_is_gone_on_with(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Begun by one driver, ended by executors, which know of the first what is in its files."""
    killed = subprocess.run([sys.executable, "-c", DRIVER, str(tmp_path / "search")], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "search" / "pass-00001" / KILLED_IN / COMMITTED).exists()
    search = large("dcc-published", CYCLE, BOTH, tmp_path / "search")
    result = replace(search, do_parts=parts_on_spark(spark)).run()
    assert told(result) == told(in_memory("dcc-published", CYCLE, BOTH))
