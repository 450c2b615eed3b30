"""What the verification of large runs costs: how many tasks, how often a run is cut, how many
messages come together. And that what is left out is not missed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.reading.local_files import look_here
from flexgroup.pipeline.reading.trace_set import TraceSet, open_remote, open_trace_set
from flexgroup.pipeline.spark.errors import readable
from flexgroup.pipeline.verify import SizeLimits, large_runs, verify
from flexgroup.pipeline.verify.check_plans import check_plans
from flexgroup.pipeline.verify.excerpts import Compared, excerpt
from flexgroup.pipeline.verify.file_pieces import pieces_of, pieces_table
from flexgroup.pipeline.verify.layout import Layout
from flexgroup.pipeline.verify.message_checks import DESTINATION, NOTE, SLICE, check_messages
from flexgroup.pipeline.verify.parted_events import read_and_part
from flexgroup.pipeline.verify.slice_edges import EARLIER, LATER, reach
from flexgroup.properties.acyclic_order import NAME as ACYCLIC
from flexgroup.properties.catalogue import check
from flexgroup.properties.indexed_history import IndexedHistory
from flexgroup.properties.opposite_orders import PAIRWISE
from flexgroup.testing.large_runs import correct_run
from flexgroup.trace.history import Deliveries, History, Multicasts

from ..trace.recorded import event_file, record, tamper
from .made_up_runs import nonsense, write_all
from .tampering import correct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDER = ["integrity", "fifo order", "acyclic order", "pairwise order"]

IN_PIECES = SizeLimits(events_from_files=0, whole_deliveries=0, cell_deliveries=100)


def verdicts_of(traces: TraceSet, properties: list[str]) -> dict[str, dict[str, Any]]:
    rows = verify(traces, properties, IN_PIECES, refuse_mixed=True).toArrow().to_pylist()
    return {row["property"]: row for row in rows}


def assert_as_here(found: dict[str, dict[str, Any]], history: History) -> None:
    """The verdicts are those of the plain-Python properties."""
    for verdict in check(history, [*found]):
        row = found[verdict.property]
        told = (row["outcome"], row["violations"], row["explanation"])
        assert told == (verdict.outcome, verdict.violations, verdict.explanation)


def tasks(spark: SparkSession) -> int:
    """How many tasks there were so far."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(None)]
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    infos = [tracker.getStageInfo(stage) for stage in stages]
    return sum(info.numCompletedTasks for info in infos if info is not None)


@pytest.mark.parametrize("opened", [open_trace_set, open_remote], ids=["files", "through Spark"])
def test_many_processes_share_tasks(
    spark: SparkSession, tmp_path: Path, opened: Callable[[SparkSession, str], TraceSet]
) -> None:
    """There was a task for each destination, and a row for each process and slice."""
    history = replace(correct_run(30, 300, 200, clients=True, packets=False), run="broad")
    write_all(tmp_path, [history])
    before = tasks(spark)
    found = verdicts_of(opened(spark, f"file:{tmp_path}"), ORDER)
    assert tasks(spark) - before < 60
    assert_as_here(found, history)


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many slices there were, each time that runs were cut."""
    counted: list[int] = []
    notes = large_runs._notes

    def counting(traces: TraceSet, layouts: dict[int, Any], kinds: Any, causal: Any) -> Any:
        counted.append(sum(layout.slices for layout in layouts.values()))
        return notes(traces, layouts, kinds, causal)

    monkeypatch.setattr(large_runs, "_notes", counting)
    return counted


def swapped_end_to_end(deliveries: int) -> History:
    """One process delivers a message from the beginning and one from the end of the run in each
    other's place; another process delivers both."""
    history = correct(deliveries)
    rows = history.deliveries
    at_first = np.flatnonzero(rows.process == 3)
    at_others = rows.message[rows.process == 4]
    shared = at_first[np.isin(rows.message[at_first], at_others)]
    message = rows.message.copy()
    message[[shared[0], shared[-1]]] = message[[shared[-1], shared[0]]]
    return replace(history, run="end-to-end", deliveries=replace(rows, message=message))


def test_what_reaches_across_the_run_is_taken_out(
    spark: SparkSession, tmp_path: Path, rounds: list[int]
) -> None:
    """Slices were made four times as large again and again, until there was only one."""
    history = swapped_end_to_end(30_000)
    write_all(tmp_path, [history])
    orders = [*ORDER, "local order", "prefix order"]
    found = verdicts_of(open_trace_set(spark, str(tmp_path)), orders)
    assert len(rounds) == 1
    assert rounds[0] > 16
    assert found[ACYCLIC]["outcome"] == "violated"
    assert_as_here(found, history)


def test_what_reaches_across_the_run_is_cut_twice_if_it_cannot_be_taken_out(
    spark: SparkSession, tmp_path: Path, rounds: list[int]
) -> None:
    """Order in real time needs everything that is ordered before a message."""
    history = swapped_end_to_end(30_000)
    write_all(tmp_path, [history])
    found = verdicts_of(open_trace_set(spark, str(tmp_path)), [*ORDER, "real-time order"])
    assert len(rounds) == 2
    assert rounds[0] > 16
    assert rounds[1] == 1
    assert_as_here(found, history)


def test_how_far_it_reaches_is_told_by_the_ends_of_slices() -> None:
    slices = 5
    edges = np.array(
        [[place, 0, place * 10, place * 10 + 1, place * 10 + 8, place * 10 + 9, EARLIER]
         for place in range(slices)]
    )  # fmt: skip
    assert reach(edges) == 0
    edges[0, 5] = 37  # the first slice has a step among those of the fourth
    assert reach(edges) == 3
    edges[4, 3] = LATER  # nothing there lies behind the margin
    assert reach(edges) == 3


def again(steps: list[dict[str, Any]]) -> Callable[[list[dict[str, Any]]], None]:
    def change(rows: list[dict[str, Any]]) -> None:
        rows[-1].update(process=steps[0]["process"], step=steps[0]["step"])

    return change


@pytest.mark.parametrize("opened", [open_trace_set, open_remote], ids=["files", "through Spark"])
def test_mixed_runs_are_found_on_the_way(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    opened: Callable[[SparkSession, str], TraceSet],
) -> None:
    """In events of any kind, and without a job of its own: all steps pass by anyway."""
    module = import_module("flexgroup.pipeline.verify.verify")
    monkeypatch.setattr(module, "refuse_duplicate_steps", None)
    name = record(tmp_path)
    steps: list[dict[str, Any]] = []
    tamper(event_file(tmp_path, "deliver", name), steps.extend)
    tamper(event_file(tmp_path, "receive", name), again(steps))
    process, step = steps[0]["process"], steps[0]["step"]
    told = f"in run '{name}' process {process} has 2 events at step {step}: two runs"
    with pytest.raises(UsageError, match=told), readable(str(tmp_path)):
        verdicts_of(opened(spark, f"file:{tmp_path}"), ORDER)


@pytest.mark.parametrize(
    ("properties", "kinds"),
    [
        (["integrity", "agreement"], {NOTE}),
        (["integrity", "fifo order"], {NOTE, DESTINATION}),
        (["acyclic order"], {NOTE, SLICE}),
    ],
)
def test_only_what_is_asked_for_is_sent_on(
    tmp_path: Path, properties: list[str], kinds: set[str]
) -> None:
    write_all(tmp_path, [correct(400)])
    files = look_here(str(tmp_path))
    assert files is not None
    (plan,) = check_plans(files.described, properties)
    layout = Layout(plan=plan, deliveries=400, crashed=(), bounds=np.array([100, 200, 300]))
    bundles = pieces_of(files, files.kinds, {plan.run})
    parted = read_and_part({plan.run: 0}, 1, {})(iter(pieces_table(bundles).to_batches()))
    sent = [row for batch in check_messages({0: layout}, {})(parted) for row in batch.to_pylist()]
    assert {row["kind"] for row in sent} == kinds


def only(history: History, messages: np.ndarray[Any, Any]) -> History:
    """The history without all other messages."""
    cast, rows = history.multicasts, history.deliveries
    kept, at = np.isin(cast.message, messages), np.isin(rows.message, messages)
    lengths = np.diff(cast.offsets)
    return replace(
        history,
        multicasts=Multicasts(
            cast.process[kept],
            cast.step[kept],
            cast.time[kept],
            cast.message[kept],
            np.concatenate([[0], np.cumsum(lengths[kept])]),
            cast.targets[np.repeat(kept, lengths)],
        ),
        deliveries=Deliveries(rows.process[at], rows.step[at], rows.time[at], rows.message[at]),
    )


def test_an_excerpt_of_a_component_tells_what_all_of_it_does() -> None:
    seen = 0
    for seed in range(150):
        history = nonsense(seed)
        run = IndexedHistory(history)
        alike = np.zeros(run.message_count, dtype=np.int64)
        ways = [Compared(run.cyclic.process, run.cyclic.message, alike)]
        found = excerpt(ways)
        if found is None:
            continue
        some = only(history, run.identities[found])
        seen += len(found) < len(np.unique(run.cyclic.message))
        for name in (ACYCLIC, PAIRWISE):
            (whole,), (part,) = check(history, [name]), check(some, [name])
            assert part.explanation == whole.explanation, (history.run, name)
            assert part.witness == whole.witness
            assert name == ACYCLIC or part.violations == whole.violations
    assert seen > 10


def test_a_run_in_one_component_is_told_from_a_few_messages() -> None:
    history = swapped_end_to_end(8_000)
    run = IndexedHistory(history)
    alike = np.zeros(run.message_count, dtype=np.int64)
    found = excerpt([Compared(run.cyclic.process, run.cyclic.message, alike)])
    assert found is not None
    assert len(np.unique(run.cyclic.message)) > 1000
    assert len(found) < 50
