"""Rows of events as they are kept: as verification has them, without what only packets have."""

from __future__ import annotations

import pyarrow as pa

COLUMNS = pa.schema(
    [
        pa.field("event", pa.int8()),
        pa.field("process", pa.int32()),
        pa.field("step", pa.int64()),
        pa.field("time", pa.int64()),
        pa.field("message", pa.int64()),
        pa.field("destinations", pa.list_(pa.int32())),
    ]
)
"""`event` is the code of a kind, `message` an identity packed in one integer."""
