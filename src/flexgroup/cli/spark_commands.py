"""What the commands that run on Spark share: their options, and how a trace set is opened."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from flexgroup.cli.arguments import Option, flag, make_folder, place, repeated
from flexgroup.cli.progress import progress_bar
from flexgroup.core.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from flexgroup.pipeline.reading.local_files import LocalFiles
    from flexgroup.pipeline.reading.trace_set import TraceSet


PROPERTIES_OPTION = repeated(
    "--property",
    "NAME",
    "check this one, of every run; may be given several times (what each run's stack promises)",
    default=None,
    dest="properties",
)


def traces_argument(what: str = "a trace set, at any place that Spark can read") -> Option:
    return Option("traces", metavar="DIR", help=what)


def master_option(note: str = "") -> Option:
    return Option(
        "--master", metavar="URL",
        help="the Spark to use, such as local[4], spark://host:7077 or yarn"
        f"{note} (two cores of this machine)",
    )  # fmt: skip


ENGINES = ("spark", "local")

ENGINE_OPTION = Option(
    "--engine", choices=ENGINES, default="spark",
    help="local: here, without Spark and its start, for runs that fit into memory (spark)",
)  # fmt: skip


def tables_options(names: Sequence[str]) -> tuple[Option, ...]:
    written = f"{', '.join(names[:-1])} and {names[-1]}"
    return (
        Option("--out", type=place, metavar="DIR", help=f"write the Parquet tables {written} here"),
        flag("--csv", "write each table as CSV, too, beside the others"),
        flag("--force", "overwrite tables that exist"),
    )


@dataclass
class TraceJob:
    """A trace set that was opened, on Spark or without, and how long it took to start and to do
    the work."""

    traces: TraceSet | LocalFiles
    out: Path | str | None
    with_csv: bool
    seconds: dict[str, float] = field(default_factory=dict)

    def write(self, tables: Mapping[str, pa.Table]) -> None:
        """Write the tables to where they are wanted."""
        from flexgroup.pipeline.result_tables import write_tables

        if isinstance(self.out, Path):
            write_tables(tables, self.out, self.with_csv)
        elif self.out is not None:
            from flexgroup.pipeline.object_stores import write_tables_in_store
            from flexgroup.pipeline.reading.local_files import LocalFiles

            if isinstance(self.traces, LocalFiles):
                write_tables_in_store(tables, self.out, self.with_csv)
                return
            from flexgroup.pipeline.tables_elsewhere import can_reach, write_tables_there

            if can_reach(self.traces.spark, self.out):
                write_tables_there(self.traces.spark, tables, self.out, self.with_csv)
            else:
                write_tables_in_store(tables, self.out, self.with_csv)

    def print_times(self, doing: str) -> None:
        """Print where the time went, and where the tables are."""
        from flexgroup.pipeline.spark.session import times_told

        start, work = self.seconds.values()
        print(times_told(start, doing, work) if start else f"{doing} took {work:.1f} s")
        if self.out is not None:
            print(f"tables written to {self.out}")

    def to_json(self) -> dict[str, object]:
        return {"out": str(self.out) if self.out else None, "seconds": self.seconds}


@contextmanager
def trace_job(
    options: argparse.Namespace, command: str, doing: str, tables: Sequence[str]
) -> Iterator[TraceJob]:
    """Open the trace set of a command with the options above, and time what is done with it.

    Whatever can be refused is refused before Spark starts, which takes longer.
    """
    from flexgroup.pipeline.object_stores import fetched, is_store, refuse_to_overwrite_in_store
    from flexgroup.pipeline.reading.local_files import look_here, refuse_if_missing
    from flexgroup.pipeline.result_tables import refuse_to_overwrite

    if options.csv and options.out is None:
        raise UsageError("--csv writes files; say where with --out DIR")
    if options.engine == "local":
        _refuse_what_needs_spark(options)
    if isinstance(options.out, Path) and not options.force:
        refuse_to_overwrite(options.out, tables)
    if isinstance(options.out, str) and options.engine == "local" and not options.force:
        refuse_to_overwrite_in_store(options.out, tables)
    refuse_if_missing(options.traces, options.master)
    with ExitStack() as room:
        here = options.traces
        if options.engine == "local" and is_store(here):
            here = str(room.enter_context(fetched(here)))
        files = look_here(here)
        if isinstance(options.out, Path):
            make_folder(options.out)
        opened = _opened_here if options.engine == "local" else _opened_on_spark
        start, traces = opened(options, command, tables, files)
        began = time.perf_counter()
        with _plain_errors(options), progress_bar(doing, not options.json, known=False):
            job = TraceJob(traces(room), options.out, options.csv)
            yield job
        job.seconds |= {"start": start, command: time.perf_counter() - began}


Opened = tuple[float, "Callable[[ExitStack], TraceSet | LocalFiles]"]
"""How many seconds it took to start, and what opens the trace set then, as long as the stack is."""


def _opened_here(
    options: argparse.Namespace, command: str, tables: Sequence[str], files: LocalFiles | None
) -> Opened:
    if files is None:
        raise UsageError(
            f"'{options.traces}' is in another file system, which --engine local does not read;"
            " leave it out to have Spark read it"
        )
    few = files.runs_to_read()
    for run in files.described:
        if run.run not in few:
            raise UsageError(
                f"run '{run.run}' has too many events for --engine local, or shares files with"
                " too many others; leave the option out to have Spark read it"
            )
    return 0.0, lambda room: files


def _opened_on_spark(
    options: argparse.Namespace, command: str, tables: Sequence[str], files: LocalFiles | None
) -> Opened:
    from flexgroup.pipeline.reading.local_files import settings_for
    from flexgroup.pipeline.spark.session import start

    with progress_bar("starting Spark", not options.json, known=False):
        settings = settings_for(files, options.master)
        started = start(options.master, f"flexgroup {command}", settings)
    # Only now: without Spark, start has said what to do about it.
    from flexgroup.pipeline.object_stores import fetched, refuse_to_overwrite_in_store
    from flexgroup.pipeline.reading.trace_set import open_trace_set
    from flexgroup.pipeline.tables_elsewhere import can_reach, refuse_to_overwrite_there

    spark = started.spark
    if isinstance(options.out, str) and not options.force:
        if can_reach(spark, options.out):
            refuse_to_overwrite_there(spark, options.out, tables)
        else:
            refuse_to_overwrite_in_store(options.out, tables)

    def opened(room: ExitStack) -> TraceSet:
        if files is not None or can_reach(spark, options.traces):
            return open_trace_set(spark, options.traces, files)
        return open_trace_set(spark, str(room.enter_context(fetched(options.traces))))

    return started.seconds, opened


def _refuse_what_needs_spark(options: argparse.Namespace) -> None:
    if options.master is not None:
        raise UsageError(
            f"--master {options.master} needs Spark, and --engine local does without; leave one out"
        )


def _plain_errors(options: argparse.Namespace) -> AbstractContextManager[None]:
    if options.engine == "local":
        return _enough_memory()
    from flexgroup.pipeline.spark.errors import readable

    return readable(options.traces)


@contextmanager
def _enough_memory() -> Iterator[None]:
    try:
        yield
    except MemoryError:
        raise UsageError(
            "there is not enough memory here for the largest run: leave --engine local out, and"
            " give --master a Spark with more"
        ) from None
