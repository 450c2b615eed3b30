"""Messages that are taken out of slices: what is told of them is what the whole run shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flexgroup.pipeline.in_memory.packed_rows import PACKED_ROWS
from flexgroup.pipeline.reading.local_files import look_here
from flexgroup.pipeline.verify.check_plans import check_plans
from flexgroup.pipeline.verify.far_messages import PASSAGE
from flexgroup.pipeline.verify.file_pieces import pieces_of, pieces_table
from flexgroup.pipeline.verify.large_runs import _cut, _Told
from flexgroup.pipeline.verify.layout import Layout, cell_bounds
from flexgroup.pipeline.verify.message_checks import FAR, check_messages
from flexgroup.pipeline.verify.order_checks import COMPONENT, check_orders
from flexgroup.pipeline.verify.parted_events import read_and_part
from flexgroup.properties.catalogue import check
from flexgroup.properties.indexed_history import IndexedHistory
from flexgroup.trace.history import History

from .made_up_runs import write_all
from .tampering import correct
from .test_large_runs import only

PARTS = 3
ORDERS = ["acyclic order", "pairwise order", "local order", "prefix order"]


def with_far_messages(seed: int, moves: int) -> History:
    """A run in which some deliveries of a process moved to anywhere in its history, and some
    neighbours were swapped."""
    random = np.random.default_rng(seed)
    history = correct(4_000)
    rows = history.deliveries
    message, time = rows.message.copy(), rows.time.copy()
    for _ in range(moves):
        process = int(random.integers(0, 8))
        low, high = np.searchsorted(rows.process, [process, process + 1])
        first, then = np.sort(random.integers(low, high, 2))
        message[first : then + 1] = np.roll(message[first : then + 1], int(random.choice([-1, 1])))
    for _ in range(int(random.integers(0, 3))):
        at = int(random.integers(0, len(message) - 1))
        message[[at, at + 1]] = message[[at + 1, at]]
    return replace(history, run="far", deliveries=replace(rows, message=message, time=time))


def places(rows: Iterator[pa.RecordBatch], tasks: int) -> list[list[pa.RecordBatch]]:
    """Packed rows as a shuffle hands them to so many tasks."""
    table = pa.Table.from_batches(rows, PACKED_ROWS)
    task = np.asarray(table.column("place")) % tasks
    return [table.filter(pa.array(task == each)).to_batches() for each in range(tasks)]


def notes_on(history: History, folder: Path, cells: int) -> list[dict[str, Any]]:
    """All notes of both stages on a run."""
    write_all(folder, [history])
    files = look_here(str(folder))
    assert files is not None
    (plan,) = check_plans(files.described, ORDERS)
    times = np.sort(history.deliveries.time)
    layout = Layout(
        plan=plan,
        deliveries=len(times),
        crashed=(),
        bounds=cell_bounds(times, len(times), len(times) // cells),
        cells_a_slice=8,
    )
    read = read_and_part({plan.run: 0}, PARTS, {})
    parted = read(iter(pieces_table(pieces_of(files, files.kinds, {plan.run})).to_batches()))
    checked = (
        batch
        for task in places(parted, PARTS)
        for batch in check_messages({0: layout}, {})(iter(task))
    )
    return [
        note
        for task in places(checked, layout.places)
        for batch in check_orders({0: layout})(iter(task))
        for note in batch.to_pylist()
    ]


def told(notes: Sequence[dict[str, Any]]) -> list[_Told]:
    return [_Told(**note, shown=0) for note in notes]


@pytest.mark.parametrize("moves", [1, 2, 4])
def test_slices_tell_what_the_whole_run_shows(tmp_path: Path, moves: int) -> None:
    """How many cyclic components there are; and their excerpt tells what all of the run does."""
    seen: dict[str, int] = defaultdict(int)
    for seed in range(12):
        history = with_far_messages(100 * moves + seed, moves)
        notes = notes_on(history, tmp_path / str(seed), cells=40)
        narrow, joined = _cut(told(notes))
        if narrow:
            seen["narrow"] += 1
            continue
        seen["taken out"] += bool(joined)
        count = sum(note["total"] for note in notes if note["about"] == COMPONENT)
        count += sum(each.components - each.parts for each in joined.values())
        whole = IndexedHistory(history)
        assert count == len(whole.merge.components), (moves, seed)
        seen["joined"] += any(each.parts for each in joined.values())
        shown = [note["messages"] for note in notes if note["about"] in (COMPONENT, FAR)]
        some = only(history, np.unique(np.concatenate([np.array([], dtype=np.int64), *shown])))
        for all_of_it, excerpt in zip(check(history, ORDERS), check(some, ORDERS), strict=True):
            assert excerpt.explanation == all_of_it.explanation or all_of_it.outcome == "holds"
            assert excerpt.witness == all_of_it.witness, (moves, seed, excerpt.property)
            if excerpt.property != "acyclic order":
                assert excerpt.violations == all_of_it.violations
    print(dict(seen))
    assert seen["taken out"] > 3


def test_nothing_is_taken_out_of_a_run_without_far_messages(tmp_path: Path) -> None:
    abouts = {note["about"] for note in notes_on(correct(4_000), tmp_path, cells=40)}
    assert not abouts & {FAR, PASSAGE, COMPONENT}
