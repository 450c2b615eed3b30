"""Events on their way to the tasks of a large run, packed chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexgroup.core.errors import UsageError
from flexgroup.core.message import message_id
from flexgroup.pipeline.in_memory.packed_rows import pack, received_by_run, unpack
from flexgroup.pipeline.verify import parted_events
from flexgroup.pipeline.verify.parted_events import DELIVER_COLUMNS, part_events
from flexgroup.pipeline.verify.steps_taken import STEPS, refuse_steps_taken_twice, steps_taken
from flexgroup.trace.history import Ints
from flexgroup.trace.schema import DELIVER

INTEGERS = st.one_of(st.integers(-300, 300), st.integers(-(1 << 63), (1 << 63) - 1))


def ints(values: Iterable[int]) -> Ints:
    return np.array([*values], dtype=np.int64)


@given(st.lists(st.lists(INTEGERS, max_size=5), min_size=1, max_size=4), st.integers(1, 3))
def test_columns_of_any_numbers_and_lengths_come_back(columns: list[list[int]], times: int) -> None:
    payload = pack([ints(column) for column in columns])
    found = unpack([pa.py_buffer(payload)] * times, len(columns))
    assert [column.tolist() for column in found] == [column * times for column in columns]


def test_small_numbers_take_few_bytes_wherever_they_begin() -> None:
    rows = 10_000
    step = np.arange(rows) + (1 << 40)
    process = np.arange(rows) % 16
    assert len(pack([process, step])) < rows * 3 + 100


def test_nothing_is_lost_between_chunks_and_a_message_is_in_one_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parted_events, "ROWS_AT_ONCE", 10)
    events = [
        {
            "number": row % 2,
            "process": row % 3,
            "step": row,
            "time": row * 7,
            "message": message_id(row // 4, 5),
        }
        for row in range(45)
    ]
    batches = pa.Table.from_pylist(events).to_batches(max_chunksize=4)
    chunks = list(part_events(DELIVER, 3, {})(iter(batches)))
    assert len(chunks) == 4
    found = []
    places: dict[int, set[int]] = {}
    for number, kinds in received_by_run(iter(chunks)).items():
        for place, payload in kinds[DELIVER]:
            columns = [column.tolist() for column in unpack([payload], DELIVER_COLUMNS)]
            for process, step, time, origin, seq in zip(*columns, strict=True):
                message = message_id(origin, seq)
                places.setdefault(message, set()).add(place)
                found.append(
                    {
                        "number": number,
                        "process": process,
                        "step": step,
                        "time": time,
                        "message": message,
                    }
                )
    assert sorted(found, key=lambda row: row["step"]) == events
    assert {len(of_message) for of_message in places.values()} == {1}
    assert set().union(*places.values()) == {0, 1, 2}


class TestSteps:
    """Every event leaves a bit for its step, and a step that comes twice is refused."""

    STEP = st.one_of(st.integers(0, 200), st.integers(0, 1 << 62))

    @given(st.lists(st.lists(st.tuples(st.integers(0, 2), STEP), min_size=1), max_size=3))
    def test_a_step_is_refused_if_it_was_taken_twice(
        self, chunks: list[list[tuple[int, int]]]
    ) -> None:
        taken = [steps_taken(*map(ints, zip(*chunk, strict=True))) for chunk in chunks]
        columns = [np.concatenate([ints([]), *column]) for column in zip(*taken, strict=True)]
        events = [event for chunk in chunks for event in chunk]
        again = [event for event in events if events.count(event) > 1]
        if not again:
            refuse_steps_taken_twice("one", *(columns or [ints([])] * 3))
            return
        process, step = min(again)
        rows = events.count((process, step))
        told = f"in run 'one' process {process} has {rows} events at step {step}:"
        with pytest.raises(UsageError, match=told):
            refuse_steps_taken_twice("one", *columns)

    def test_steps_that_follow_each_other_are_a_fraction_of_the_events(self) -> None:
        rows = 64_000
        batch = pa.record_batch(
            {
                "number": np.zeros(rows, dtype=np.int64),
                "process": np.arange(rows) % 4,
                "step": np.arange(rows) // 4,
            }
        )
        (packed,) = part_events("send", 5, {})(iter([batch]))
        assert set(packed.column("kind").to_pylist()) == {STEPS}
        assert packed.nbytes < rows
