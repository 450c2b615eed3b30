"""The tables that watching keeps, which grow by a folder with each batch that has something to say.

They are made small again from time to time, so that files and rows are bounded by what goes on and
not by what ever went on. Only folders of batches that Spark will not repeat are touched. The rows
that are kept appear as one file, all at once, before the others go: whoever reads meanwhile may see
a row twice, and misses none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from flexgroup.pipeline.spark.frames import spark_schema

FOLDERS = 32
"""A table is made small when it has so many folders."""

ROWS = 10_000
"""So many rows about runs that are over are kept: those that were told last."""

Rows = list[dict[str, Any]]


class KeptTables:
    """Folders below one location, wherever Spark can write."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        java, context = spark._jvm, spark.sparkContext._jsc
        assert java is not None
        assert context is not None
        self._spark = spark
        self._location = location
        self._path = java.org.apache.hadoop.fs.Path
        self._files = self._path(location).getFileSystem(context.hadoopConfiguration())

    def names(self, folder: str) -> list[str]:
        """Return the names of what is in a folder, if there is one."""
        path = self._at(folder)
        if not self._files.exists(path):
            return []
        return sorted(str(each.getPath().getName()) for each in self._files.listStatus(path))

    def remove(self, name: str) -> None:
        self._files.delete(self._at(name), True)

    def batches(self, table: str) -> list[int]:
        """Return the batches of which a table has a folder."""
        return sorted(
            int(name.removeprefix("batch="))
            for name in self.names(table)
            if name.startswith("batch=")
        )

    def make_small(
        self, table: str, columns: pa.Schema, before: int, keep: Callable[[Rows], Rows]
    ) -> Rows | None:
        """Put what batches before this one wrote into one file, as far as it is to be kept; return
        that, or None where the table is small."""
        folders = [batch for batch in self.batches(table) if batch < before]
        if len(folders) < FOLDERS:
            return None
        names = [f"{self._location}/{table}/batch={batch}" for batch in folders]
        reading = self._spark.read.option("basePath", f"{self._location}/{table}")
        wanted = columns.append(pa.field("batch", pa.int64()))
        found = reading.schema(spark_schema(wanted)).parquet(*names).toArrow().to_pylist()
        kept = keep(sorted(found, key=lambda row: int(row["batch"])))
        rows = pa.Table.from_pylist(kept, columns)
        draft, last = f"{table}/_small", f"{table}/batch={folders[-1]}"
        writing = self._spark.createDataFrame(rows).coalesce(1).write
        writing.mode("overwrite").parquet(f"{self._location}/{draft}")
        replaced = self.names(last)
        (whole,) = (name for name in self.names(draft) if name.endswith(".parquet"))
        self._files.rename(self._at(f"{draft}/{whole}"), self._at(f"{last}/{whole}"))
        for name in replaced:
            self.remove(f"{last}/{name}")
        for batch in folders[:-1]:
            self.remove(f"{table}/batch={batch}")
        self.remove(draft)
        return kept

    def _at(self, name: str) -> Any:
        return self._path(f"{self._location}/{name}")


def last_told(rows: Rows, going_on: Collection[str], most: int = ROWS) -> Rows:
    """Return the last row of each run and property: of all runs that go on, and of those that are
    over as many as are kept; the rows are by batch."""
    last = {(row["run"], row["property"]): row for row in rows}
    open_rows = [row for row in last.values() if row["run"] in going_on]
    over = [row for row in last.values() if row["run"] not in going_on]
    over.sort(key=lambda row: int(row["batch"]))
    return sorted([*over[-most:], *open_rows], key=lambda row: int(row["batch"]))
