"""Structured Streaming over a growing trace set, with one follower per run.

Each batch reads the state that the batch before it wrote, and writes its own: two folders in
turn. Spark logs what belongs to a batch before it runs, and repeats the last one after a crash,
from the same files, with the same state before it, into the same places: nothing is lost and
nothing is told twice.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Lock

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from flexgroup.pipeline.in_memory.verdict_table import VERDICTS, verdict_table
from flexgroup.pipeline.spark.errors import readable, unless_missing
from flexgroup.pipeline.spark.frames import nothing, read_files, rows_of, spark_schema
from flexgroup.pipeline.watch.follower import HOLD
from flexgroup.pipeline.watch.kept_tables import KeptTables, last_told
from flexgroup.pipeline.watch.reassembly import ARRIVING
from flexgroup.pipeline.watch.sources import (
    ENDS,
    STARTS,
    arriving,
    location_of,
    traces_at,
)
from flexgroup.pipeline.watch.watch_metrics import WatchFigures
from flexgroup.pipeline.watch.watched_run import BatchReport, Description, WatchedRun

STATE = pa.schema(
    [
        pa.field("run", pa.string()),
        pa.field("batch", pa.int64()),
        pa.field("over", pa.bool_()),
        pa.field("ending", pa.bool_()),
        pa.field("watched", pa.binary()),
        pa.field("notes", pa.string()),
        pa.field("events", pa.int64()),
        pa.field("kept", pa.int64()),
        pa.field("oldest", pa.int64()),
    ]
)
"""A row per run that goes on, or was over with this batch: how far it has come, what is known of
it, what the last batch brought to light, how many events came and how many are kept, and when the
oldest file that came was written."""

OVER = pa.schema([pa.field("run", pa.string())])
"""The runs that were over with a batch, one folder each: nobody looks at them again."""

NAMES_KEPT = 100_000
"""So many runs that are over are remembered: nothing is told of what comes of them later."""

PAUSE = "1 second"
"""The time between looking for new files and looking again."""

Tell = Callable[[str, BatchReport], None]


class TraceSetWatch:
    """Watches the runs of a trace set; what is found goes to a table, and to `tell`."""

    def __init__(
        self,
        spark: SparkSession,
        traces: str,
        out: str,
        tell: Tell,
        properties: Sequence[str] | None = None,
        hold: int = HOLD,
        figures_told: Callable[[WatchFigures], None] | None = None,
    ) -> None:
        self._spark = spark
        self._path = traces
        self._traces = traces_at(traces)
        self._out = location_of(out)
        self._tell = tell
        self._properties = properties
        self._hold = hold
        self._stopping = False
        self._failure: Exception | None = None
        self._one_batch = Lock()
        self.figures = WatchFigures()
        self._figures_told = figures_told
        self._tables = KeptTables(spark, self._out)
        self._over = self._told_over()
        """The batch with which each run was over."""
        self._late: set[str] = set()
        """Runs of which events came after they were over, and which are in the state again."""
        self.unfinished, self.ending = self._left_by_another()
        """How many runs were seen and are not over, None if none was seen; and whether any ends
        with the next batch."""

    @property
    def violations(self) -> str:
        """The location of the table."""
        return f"{self._out}/violations"

    def found_any(self) -> bool:
        """Tell whether any violation was found since the checkpoint began."""
        read = self._spark.read
        none = unless_missing(lambda: read.parquet(self.violations).limit(1).isEmpty())
        return none is False

    def start(self, once: bool) -> StreamingQuery:
        """Begin with what is new since the checkpoint; until stopped, or only what is there."""
        stream = arriving(self._spark, self._traces, f"{self._out}/ticks")
        writer = stream.writeStream.foreachBatch(self.advance).option(
            "checkpointLocation", f"{self._out}/checkpoint"
        )
        if once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=PAUSE).start()

    @contextmanager
    def plain_errors(self) -> Iterator[None]:
        """Raise what is wrong with files as an error of the input, and other errors as they are."""
        from pyspark.errors import PythonException

        with readable(self._path):
            try:
                yield
            except Exception as error:
                # Spark wraps what a batch raised until nobody can read it.
                cause = self._failure or error
                if isinstance(cause, PythonException):
                    raise RuntimeError(str(cause)) from None
                raise cause from None

    def stop(self, query: StreamingQuery) -> None:
        """Let the batch that is under way come to its end, and begin no other."""
        self._stopping = True
        with self._one_batch:
            pass
        query.stop()

    def advance(self, arrived: DataFrame, batch: int) -> None:
        """Go through one batch, from the state before it to that after it; tell what it brings."""
        with self._one_batch:
            if self._stopping:
                # Spark will repeat the batch when watching goes on.
                raise RuntimeError("watching was stopped")
            try:
                self._advance(arrived, batch)
            except Exception as error:
                self._failure = error
                raise

    def _advance(self, arrived: DataFrame, batch: int) -> None:
        begun = time.monotonic()
        before = self._state(batch - 1).where(~f.col("run").isin(sorted(self._late)))
        function = advancing(batch, self._properties, self._hold)
        after = (
            before.groupBy("run")
            .cogroup(arrived.groupBy("run"))
            .applyInArrow(function, spark_schema(STATE))
        )
        after.write.mode("overwrite").parquet(self._slot(batch))
        told = ("run", "over", "ending", "notes", "events", "kept", "oldest")
        size = f.coalesce(f.length("watched"), f.lit(0)).alias("size")
        news = self._state(batch).select(*told, size).orderBy("run").collect()
        self._late = {row.run for row in news if self._over.get(row.run, batch) < batch}
        news = [row for row in news if row.run not in self._late]
        notes = {
            row.run: BatchReport(**json.loads(row.notes)) for row in news if row.notes is not None
        }
        self._record(batch, notes)
        self._remember(batch, [row.run for row in news if row.over])
        self.unfinished = sum(not row.over for row in news)
        self.ending = any(row.ending for row in news)
        if self.ending:
            self._tick(batch)
        for run, note in notes.items():
            self._tell(run, note)
        self._make_small(batch, {row.run for row in news if not row.over})
        self._count(news, notes.values(), begun)

    def _make_small(self, batch: int, going_on: Collection[str]) -> None:
        """Bound what was written by the batches before this one, which Spark will not repeat."""
        keep = partial(last_told, going_on=going_on)
        kept = self._tables.make_small("violations", VERDICTS, batch, keep)
        if kept is not None:
            self.figures.rows_kept = len(kept)
        names = self._tables.make_small("over", OVER, batch, lambda rows: rows[-NAMES_KEPT:])
        if names is not None:
            remembered = {row["run"] for row in names}
            self._over = {
                run: over for run, over in self._over.items() if over >= batch or run in remembered
            }

    def _count(self, news: Sequence[Row], notes: Iterable[BatchReport], begun: float) -> None:
        figures = self.figures
        told = sum(len(note.violations) for note in notes)
        figures.violations += told
        figures.rows_kept += told
        figures.runs_refused += sum(bool(note.refused) for note in notes)
        figures.runs_over += sum(row.over for row in news)
        figures.runs_open = sum(not row.over for row in news)
        figures.window_events = sum(row.kept or 0 for row in news if not row.over)
        figures.state_bytes = sum(row.size for row in news)
        written = [row.oldest for row in news if row.oldest is not None]
        events = sum(row.events or 0 for row in news)
        figures.batch_done(events, begun, min(written, default=None))
        if self._figures_told is not None:
            self._figures_told(figures)

    def _record(self, batch: int, notes: dict[str, BatchReport]) -> None:
        rows = [row for note in notes.values() for row in note.violations]
        if rows:
            table = self._spark.createDataFrame(verdict_table(rows)).coalesce(1)
            table.write.mode("overwrite").parquet(f"{self.violations}/batch={batch}")

    def _remember(self, batch: int, over: Sequence[str]) -> None:
        """Note which runs were over with a batch: their state is not kept."""
        if over:
            rows = rows_of(self._spark, [(run,) for run in over], OVER).coalesce(1)
            rows.write.mode("overwrite").parquet(f"{self._out}/over/batch={batch}")
            self._over |= dict.fromkeys(over, batch)

    def _told_over(self) -> dict[str, int]:
        read = self._spark.read.schema("run string, batch int")
        told = unless_missing(lambda: read.parquet(f"{self._out}/over").collect())
        return {row.run: row.batch for row in told or []}

    def _tick(self, batch: int) -> None:
        """Have another batch, although nothing new may come: runs are over one batch later."""
        self._spark.range(1).coalesce(1).write.mode("overwrite").parquet(
            f"{self._out}/ticks/{batch}"
        )
        for name in self._tables.names("ticks"):
            if name.isdecimal() and int(name) < batch - 2:  # Spark has gone through it
                self._tables.remove(f"ticks/{name}")

    def _slot(self, batch: int) -> str:
        return f"{self._out}/state/slot={batch % 2}"

    def _state(self, batch: int) -> DataFrame:
        if batch < 0:
            return nothing(self._spark, STATE)
        return read_files(self._spark, self._slot(batch), STATE)

    def _left_by_another(self) -> tuple[int | None, bool]:
        """Tell how many runs were not over when watching was stopped, and whether any was
        ending."""

        def left_in(slot: int) -> list[Row]:
            return self._state(slot).select("run", "batch", "over", "ending").collect()

        found = [
            *(unless_missing(lambda: left_in(0)) or []),
            *(unless_missing(lambda: left_in(1)) or []),
        ]
        if not found:
            return (0 if self._over else None), False
        last = max(row.batch for row in found)
        rows = [row for row in found if row.batch == last]
        self._late = {row.run for row in rows if self._over.get(row.run, last) < last}
        rows = [row for row in rows if row.run not in self._late]
        return sum(not row.over for row in rows), any(row.ending for row in rows)


def advancing(
    batch: int, properties: Sequence[str] | None, hold: int
) -> Callable[[pa.Table, pa.Table], pa.Table]:
    """Return the function that takes one run through a batch, from its state before to that
    after."""

    def advance(before: pa.Table, arrived: pa.Table) -> pa.Table:
        row = before.to_pylist()[0] if before.num_rows else None
        if row is not None and row["batch"] != batch - 1:
            raise ValueError(
                f"the state is that of batch {row['batch']}, and batch {batch} is next: the"
                " checkpoint and the state beside it are not of the same time"
            )
        if row is None:
            watched = WatchedRun(arrived.column("run")[0].as_py(), properties, hold)
        elif row["over"]:
            return STATE.empty_table()
        elif arrived.num_rows == 0 and not row["ending"]:
            nothing_new = {"batch": batch, "notes": None, "events": 0, "oldest": None}
            return pa.Table.from_pylist([{**row, **nothing_new}], STATE)
        else:
            watched = WatchedRun.from_bytes(row["watched"])
        events = arrived.filter(pa.compute.field("event") >= 0)
        notes = watched.advance(
            batch,
            events.select(ARRIVING.names).cast(ARRIVING),
            _told(arrived, STARTS),
            _told(arrived, ENDS),
        )
        after = {
            "run": watched.follower.run,
            "batch": batch,
            "over": watched.over,
            "ending": watched.ended_in is not None and not watched.over,
            "watched": None if watched.over else watched.to_bytes(),
            "notes": notes.to_json(),
            "events": events.num_rows,
            "kept": watched.follower.kept,
            "oldest": pa.compute.min(arrived.column("written")).as_py(),
        }
        return pa.Table.from_pylist([after], STATE)

    return advance


def _told(arrived: pa.Table, code: int) -> Description | None:
    rows = arrived.filter(pa.compute.field("event") == code).column("told")
    if len(rows) == 0:
        return None
    told: Description = json.loads(rows[0].as_py())
    return told
