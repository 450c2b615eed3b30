"""The tables of an experiment that are not those of its traces; how they are read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

CLAIMS = pa.schema(
    [
        ("claim", pa.string()),
        ("section", pa.string()),
        ("paper", pa.string()),
        ("holds", pa.bool_()),
        ("evidence", pa.string()),
    ]
)


def read_table(folder: Path, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder, columns=columns).to_pylist()
    return rows


def write_json(document: object, path: Path) -> None:
    draft = path.with_name(f"_{path.name}")
    draft.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    draft.replace(path)
