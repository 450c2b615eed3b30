"""Results as files: Parquet for programs, CSV for spreadsheets.

A table is written under a name that starts with an underscore, which readers pass over, and all
are renamed together when the last is whole. Whoever is interrupted leaves nothing that looks like
a result.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from flexgroup.core.errors import UsageError


def refuse_to_overwrite(directory: Path, names: Iterable[str]) -> None:
    """Raise a UsageError if one of these tables is there already."""
    for name in names:
        for path in (directory / name, directory / f"{name}.csv"):
            if path.exists():
                raise UsageError(
                    f"'{path}' exists; give --force to overwrite it, or another directory"
                )


def write_tables(tables: Mapping[str, pa.Table], directory: Path, with_csv: bool = False) -> None:
    """Write each table as a folder with one file, all or none; those of the same names give way."""
    drafts = {name: directory / f"_{name}" for name in tables}
    try:
        for name, draft in drafts.items():
            draft.mkdir(parents=True, exist_ok=True)
            pq.write_table(tables[name], draft / f"{name}.parquet")
            if with_csv:
                _write_csv(tables[name], draft.with_suffix(".csv"))
        for name, draft in drafts.items():
            shutil.rmtree(directory / name, ignore_errors=True)
            draft.rename(directory / name)
            # An old one would contradict the new table.
            (directory / f"{name}.csv").unlink(missing_ok=True)
            if with_csv:
                draft.with_suffix(".csv").rename(directory / f"{name}.csv")
    except OSError as problem:
        raise UsageError(f"cannot write into '{directory}': {problem}; choose another") from None
    finally:
        for draft in drafts.values():
            shutil.rmtree(draft, ignore_errors=True)
            with suppress(OSError):
                draft.with_suffix(".csv").unlink()


def in_order(table: pa.Table, *names: str) -> pa.Table:
    """Return the rows sorted by these columns, nulls coming first."""
    columns = ([(value is not None, value) for value in table[name].to_pylist()] for name in names)
    keys = list(zip(*columns, strict=True))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return table.take(pa.array(order, pa.int64()))


def _write_csv(table: pa.Table, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        for batch in table.to_batches():
            writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))
