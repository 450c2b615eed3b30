"""`flexgroup watch`: violations while the system runs, or while a simulation does."""

from __future__ import annotations

import argparse
import json
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flexgroup.cli.arguments import Command, Group, Option, flag
from flexgroup.cli.progress import stop_requests
from flexgroup.cli.spark_commands import (
    ENGINE_OPTION,
    PROPERTIES_OPTION,
    master_option,
    traces_argument,
)
from flexgroup.core.errors import UsageError
from flexgroup.pipeline.spark.session import SMALL_JOB

if TYPE_CHECKING:
    from flexgroup.pipeline.watch.stream import TraceSetWatch
    from flexgroup.pipeline.watch.watch_metrics import WatchFigures
    from flexgroup.pipeline.watch.watched_run import BatchReport

# Watching is many small jobs, parallel over runs, few of which go on at the same time.
LOCAL_SETTINGS = {**SMALL_JOB, "spark.sql.shuffle.partitions": "2"}

MOMENT = 1
"""So many seconds may pass until a request to stop is noticed, or, without Spark, new files are."""


COMMAND = Command(
    "watch",
    "check the runs of a trace set while they are being recorded",
    "flexgroup watch runs/first --until-finished",
    (
        traces_argument("the directory of a trace set, which may still be empty"),
        Option("--out", metavar="DIR", help="where violations and the checkpoint go (DIR/_watch)"),
        PROPERTIES_OPTION,
        ENGINE_OPTION,
        master_option(),
        Option(
            "--metrics",
            metavar="HOST:PORT",
            help="answer collectors of metrics here, in the text format of Prometheus",
        ),
        Group(
            "",
            flag("--once", "check what is there, and stop"),
            flag("--until-finished", "stop when every run that was seen is over"),
        ),
    ),
    "Check the runs of a trace set while they are being recorded, until interrupted. A restart"
    " goes on where watching was stopped (with --engine local, it begins anew). With --json, one"
    " JSON object a line.",
)


def run(options: argparse.Namespace) -> int:
    from flexgroup.properties.catalogue import known_properties

    properties = None if options.properties is None else known_properties(options.properties)
    watch = watch_here if options.engine == "local" else watch_on_spark
    return watch(options, properties)


def watch_here(options: argparse.Namespace, properties: Sequence[str] | None) -> int:
    """Watch in this process, in memory."""
    from flexgroup.pipeline.watch.folder import FolderWatch

    for name in ("out", "master", "metrics"):
        if getattr(options, name) is not None:
            raise UsageError(
                f"--{name} needs Spark, and --engine local does without; leave one out"
            )
    printer = Printer(options.json)
    watch = FolderWatch(Path(options.traces), printer.tell, properties)
    with stop_requests(signal.SIGINT, signal.SIGTERM) as stopping:
        while not stopping():
            watch.look()
            enough = options.once or (options.until_finished and watch.unfinished == 0)
            if enough and not watch.ending:
                break
            time.sleep(0 if watch.ending else MOMENT)
    if watch.found_any:
        return 1
    printer.refuse(options.traces)
    return 0


def watch_on_spark(options: argparse.Namespace, properties: Sequence[str] | None) -> int:
    from flexgroup.pipeline.spark.session import refuse_connect, refuse_without_pyspark, start
    from flexgroup.wire.address import parse_server_address

    refuse_without_pyspark()
    from flexgroup.pipeline.watch.sources import traces_at
    from flexgroup.pipeline.watch.stream import TraceSetWatch
    from flexgroup.pipeline.watch.watch_metrics import WatchMetrics

    traces_at(options.traces)
    refuse_connect(options.master, "watching")
    metrics_at = None if options.metrics is None else parse_server_address(options.metrics)
    out = options.out or options.traces.rstrip("/") + "/_watch"
    printer = Printer(options.json)
    settings = LOCAL_SETTINGS if options.master is None else None
    started = start(options.master, "flexgroup watch", settings)
    try:
        watch = TraceSetWatch(
            started.spark, options.traces, out, printer.tell, properties,
            figures_told=printer.tell_figures,
        )  # fmt: skip
        if metrics_at is not None:
            WatchMetrics(watch.figures).serve(metrics_at.host, metrics_at.port)
        with watch.plain_errors(), stop_requests(signal.SIGINT, signal.SIGTERM) as stopping:
            follow(watch, options.once, options.until_finished, stopping)
        if watch.found_any():
            return 1
    finally:
        started.stop()
    printer.refuse(options.traces)
    return 0


def follow(
    watch: TraceSetWatch, once: bool, until_finished: bool, stopping: Callable[[], bool]
) -> None:
    """Watch until that is enough, or until asked to stop."""
    # Also when a later end is wanted: what is there already may be all that is wanted.
    catching_up = once or until_finished
    query = watch.start(catching_up)
    while not stopping():
        if query.awaitTermination(MOMENT):
            if not watch.ending and (once or watch.unfinished == 0):
                return
            catching_up = once or watch.ending
            query = watch.start(catching_up)
        elif until_finished and not catching_up and watch.unfinished == 0:
            break
    watch.stop(query)


class Printer:
    """Prints what was found about runs, for people or for programs."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self.refused: dict[str, str] = {}

    def tell(self, run: str, notes: BatchReport) -> None:
        if notes.refused:
            self.refused[run] = notes.refused
        lines = self._objects(run, notes) if self._as_json else self._texts(run, notes)
        for line in lines:
            print(line, flush=True)

    def refuse(self, traces: str) -> None:
        """Raise a UsageError if a run could not be followed."""
        for name, reason in self.refused.items():
            raise UsageError(
                f"run '{name}' cannot be watched: {reason}; when it is over, check it with:"
                f" flexgroup verify {traces}"
            )

    def tell_figures(self, figures: WatchFigures) -> None:
        """Print the figures after a batch, for programs."""
        if self._as_json:
            print(json.dumps({"metrics": figures.to_json()}), flush=True)

    def _objects(self, run: str, notes: BatchReport) -> Iterator[str]:
        for row in notes.violations:
            yield json.dumps({**row, "witness": json.loads(str(row["witness"]))}, sort_keys=True)
        if notes.refused:
            yield json.dumps({"run": run, "refused": notes.refused}, sort_keys=True)
        if notes.final:
            verdicts = {str(row["property"]): row["outcome"] for row in notes.final}
            over = {"run": run, "over": True, "verdicts": verdicts, "unwatched": notes.unwatched}
            yield json.dumps(over, sort_keys=True)

    def _texts(self, run: str, notes: BatchReport) -> Iterator[str]:
        for row in notes.violations:
            lines = [f"{run}", f"{row['property']}: violated, {row['violations']} so far"]
            yield "\n  ".join(
                [*lines, *(f"  {line}" for line in str(row["explanation"]).splitlines())]
            )
        if notes.refused:
            yield f"{run}\n  cannot be watched any further: {notes.refused}"
        if notes.final:
            yield "\n  ".join([f"{run} is over", *self._outcomes(notes)])

    def _outcomes(self, notes: BatchReport) -> Iterator[str]:
        for row in notes.final:
            count = f", {row['violations']} in all" if row["violations"] else ""
            yield f"{row['property']}: {row['outcome']}{count}"
        for name in notes.unwatched:
            yield f"{name}: left to flexgroup verify"
