"""The tables of measures as files: Parquet for programs, CSV for spreadsheets.

A table is written under a name that starts with an underscore, which readers pass over, and all
are renamed together when the last is whole. Whoever is interrupted leaves nothing that looks like
a result.
"""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.measure.points import points
from flexgroup.pipeline.measure.runs import POINT, measure_runs
from flexgroup.pipeline.measure.traffic import by_packet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexgroup.pipeline.read import TraceSet

TABLES = ("measures", "points", "packets")


def refuse_to_overwrite(directory: Path) -> None:
    """Raise a UsageError if a table is there already."""
    for name in TABLES:
        for path in (directory / name, directory / f"{name}.csv"):
            if path.exists():
                raise UsageError(
                    f"'{path}' exists; give --force to overwrite it, or another directory"
                )


def write_tables(traces: TraceSet, directory: Path, with_csv: bool = False) -> DataFrame:
    """Measure, and write the TABLES into a directory that all executors can reach; the points."""
    directory = directory.absolute()
    drafts = {name: directory / f"_{name}" for name in TABLES}
    try:
        measures = _written(measure_runs(traces), drafts["measures"], "run")
        _written(points(measures), drafts["points"], *POINT)
        _written(by_packet(traces), drafts["packets"], "run", "sender", "packet")
        if with_csv:
            for draft in drafts.values():
                _write_csv(draft, draft.with_name(f"{draft.name}.csv"))
        for name, draft in drafts.items():
            shutil.rmtree(directory / name, ignore_errors=True)
            draft.rename(directory / name)
            # An old one would contradict the new table.
            (directory / f"{name}.csv").unlink(missing_ok=True)
            if with_csv:
                draft.with_name(f"{draft.name}.csv").rename(directory / f"{name}.csv")
    finally:
        for draft in drafts.values():
            shutil.rmtree(draft, ignore_errors=True)
            draft.with_name(f"{draft.name}.csv").unlink(missing_ok=True)
    return _read(measures, directory / "points")


def _written(frame: DataFrame, folder: Path, *sorted_by: str) -> DataFrame:
    """Written as one sorted file, and read back: nothing is computed twice."""
    one = frame.repartition(1).sortWithinPartitions(*sorted_by)
    one.write.mode("overwrite").parquet(f"file:{folder}")
    if not any(folder.glob("*.parquet")):
        raise UsageError(
            f"the executors wrote '{folder.parent}' where this machine does not see it; "
            "give --out on a file system that all machines share"
        )
    return _read(frame, folder)


def _read(frame: DataFrame, folder: Path) -> DataFrame:
    return frame.sparkSession.read.parquet(f"file:{folder}")


def _write_csv(folder: Path, path: Path) -> None:
    table = pq.read_table(folder)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        for batch in table.to_batches():
            writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))
