"""The state of a follower as bytes, between batches: JSON, arrays of integers, and tables."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from flexgroup.trace.history import Ints

_HEADER, _TABLE = "header", "table-"


@dataclass(frozen=True)
class Snapshot:
    """One JSON object, named arrays of integers, and named tables."""

    header: dict[str, Any]
    arrays: dict[str, Ints] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        named = {
            **self.arrays,
            **{_TABLE + name: _octets(_as_stream(table)) for name, table in self.tables.items()},
            _HEADER: _octets(json.dumps(self.header).encode()),
        }
        out = io.BytesIO()
        np.savez(out, **named)
        return out.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Snapshot:
        named = dict(np.load(io.BytesIO(data)))
        header = json.loads(named.pop(_HEADER).tobytes())
        tables = {
            name.removeprefix(_TABLE): pa.ipc.open_stream(named[name].tobytes()).read_all()
            for name in named
            if name.startswith(_TABLE)
        }
        arrays = {name: array for name, array in named.items() if not name.startswith(_TABLE)}
        return cls(header, arrays, tables)


def _octets(data: bytes) -> Any:
    return np.frombuffer(data, dtype=np.uint8)


def _as_stream(table: pa.Table) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return out.getvalue()
