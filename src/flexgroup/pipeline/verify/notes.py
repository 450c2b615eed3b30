"""What tasks find of large runs, on the way to the driver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Note:
    """A part of what is known of a run: how many violations, and the first of them.

    `rank` orders parts: the smallest tells which violation is shown, that of `messages`.
    """

    number: int
    about: str
    kind: str
    total: int
    rank: Sequence[int]
    messages: Sequence[int]


NOTES = pa.schema(
    [
        pa.field("number", pa.int32()),
        pa.field("about", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("total", pa.int64()),
        pa.field("rank", pa.list_(pa.int64())),
        pa.field("messages", pa.list_(pa.int64())),
    ]
)


def notes_batch(notes: Iterable[Note]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([vars(note) for note in notes], NOTES)
