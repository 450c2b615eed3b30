"""What the commands that run on Spark share: their options, and how a trace set is opened."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from flexgroup.cli.arguments import Option, flag, make_folder, repeated
from flexgroup.cli.progress import progress_bar

if TYPE_CHECKING:
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


def tables_options(names: Sequence[str]) -> tuple[Option, Option]:
    written = f"{', '.join(names[:-1])} and {names[-1]}"
    return (
        Option("--out", type=Path, metavar="DIR", help=f"write the Parquet tables {written} here"),
        flag("--force", "overwrite tables that exist"),
    )


@dataclass
class TraceJob:
    """A trace set that was opened on Spark, and how long it took to start and to do the work."""

    traces: TraceSet
    out: Path | None
    seconds: dict[str, float] = field(default_factory=dict)

    def print_times(self, doing: str) -> None:
        """Print where the time went, and where the tables are."""
        from flexgroup.pipeline.spark.session import times_told

        start, work = self.seconds.values()
        print(times_told(start, doing, work))
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
    from flexgroup.pipeline.reading.local_files import look_here, refuse_if_missing, settings_for
    from flexgroup.pipeline.result_tables import refuse_to_overwrite
    from flexgroup.pipeline.spark.session import start

    if options.out is not None and not options.force:
        refuse_to_overwrite(options.out, tables)
    refuse_if_missing(options.traces, options.master)
    files = look_here(options.traces)
    if options.out is not None:
        make_folder(options.out)
    settings = settings_for(files, options.master)
    wanted = not options.json
    with progress_bar("starting Spark", wanted, known=False):
        started = start(options.master, f"flexgroup {command}", settings)
    began = time.perf_counter()
    # Only now: without Spark, start has said what to do about it.
    from flexgroup.pipeline.reading.trace_set import open_trace_set
    from flexgroup.pipeline.spark.errors import readable

    with readable(options.traces), progress_bar(doing, wanted, known=False):
        job = TraceJob(open_trace_set(started.spark, options.traces, files), options.out)
        yield job
    job.seconds |= {"start": started.seconds, command: time.perf_counter() - began}
