"""State as bytes, between batches: JSON, with arrays of integers and tables of Arrow in it.

Nothing in the bytes is code, whoever has written them.
"""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pyarrow as pa

from flexgroup.pipeline.in_memory.packed_rows import pack_table, unpack_table

_STATE, _ARRAY, _TABLE = "state", "an array", "a table"


def to_bytes(state: object) -> bytes:
    """Return the attributes of an object: what JSON can hold, arrays, tables, and objects of such
    attributes."""
    blobs: dict[str, Any] = {}

    def aside(value: Any) -> object:
        """Put aside what JSON cannot hold, and return what stands for it."""
        if isinstance(value, set):
            return sorted(value)
        name = str(len(blobs))
        if isinstance(value, np.ndarray):
            blobs[name] = value
            return {_ARRAY: name}
        if isinstance(value, pa.Table):
            blobs[name] = _octets(pack_table(value.combine_chunks()))
            return {_TABLE: name}
        return vars(value)

    text = json.dumps(state, default=aside)
    out = io.BytesIO()
    np.savez(out, **blobs, **{_STATE: _octets(text.encode())})
    return out.getvalue()


def from_bytes(data: bytes) -> dict[str, Any]:
    """Return the attributes of the object that was written."""
    blobs = np.load(io.BytesIO(data))

    def restored(value: dict[str, Any]) -> Any:
        if value.keys() == {_ARRAY}:
            return blobs[value[_ARRAY]]
        return unpack_table(blobs[value[_TABLE]].tobytes()) if value.keys() == {_TABLE} else value

    state: dict[str, Any] = json.loads(blobs[_STATE].tobytes(), object_hook=restored)
    return state


def _octets(data: bytes) -> Any:
    return np.frombuffer(data, dtype=np.uint8)
