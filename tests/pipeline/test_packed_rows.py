"""Events on their way to the tasks of a large run, packed chunk by chunk."""

from __future__ import annotations

import pyarrow as pa
import pytest

from flexgroup.pipeline.verify import packed_rows
from flexgroup.pipeline.verify.packed_rows import partition, received_by_run, unpack_table
from flexgroup.trace.schema import DELIVER


def test_nothing_is_lost_between_chunks_and_a_message_is_in_one_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packed_rows, "ROWS_AT_ONCE", 10)
    events = [{"number": row % 2, "message": row // 4, "step": row} for row in range(45)]
    batches = pa.Table.from_pylist(events).to_batches(max_chunksize=4)
    chunks = list(partition(DELIVER, 3)(iter(batches)))
    assert len(chunks) == 4
    found = []
    places: dict[int, set[int]] = {}
    for number, kinds in received_by_run(iter(chunks)).items():
        for place, payload in kinds[DELIVER]:
            rows = unpack_table(payload).to_pylist()
            assert {row["number"] for row in rows} == {number}
            for row in rows:
                places.setdefault(row["message"], set()).add(place)
            found += rows
    assert sorted(found, key=lambda row: int(row["step"])) == events
    assert {len(of_message) for of_message in places.values()} == {1}
    assert set().union(*places.values()) == {0, 1, 2}
