"""The tables of an experiment: each is written whole, then takes the place of the old one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CLAIMS = pa.schema(
    [
        ("claim", pa.string()),
        ("section", pa.string()),
        ("paper", pa.string()),
        ("holds", pa.bool_()),
        ("evidence", pa.string()),
    ]
)


def write_table(frame: DataFrame, folder: Path, sorted_by: Sequence[str]) -> None:
    """A table that does not grow with the traces, as one sorted file."""
    draft = _draft(folder)
    one = frame.repartition(1).sortWithinPartitions(*sorted_by)
    one.write.mode("overwrite").parquet(f"file:{draft.absolute()}")
    _take_place(draft, folder)


def write_rows(rows: list[dict[str, Any]], schema: pa.Schema, folder: Path) -> None:
    draft = _draft(folder)
    draft.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema), draft / f"{folder.name}.parquet")
    _take_place(draft, folder)


def read_table(folder: Path, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder, columns=columns).to_pylist()
    return rows


def write_json(document: object, path: Path) -> None:
    draft = path.with_name(f"_{path.name}")
    draft.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    draft.replace(path)


def _draft(folder: Path) -> Path:
    """Readers pass over names that start with an underscore."""
    return folder.with_name(f"_{folder.name}")


def _take_place(draft: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)
