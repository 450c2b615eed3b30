"""Runs that fit into one task, judged there from their files by the plain-Python properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from flexgroup.pipeline.each_run import Work, for_each_run
from flexgroup.pipeline.verify.mixed import refuse_mixed_events
from flexgroup.pipeline.verify.promises import Plan
from flexgroup.pipeline.verify.tables import VERDICTS, verdict_row, verdict_table
from flexgroup.properties.catalogue import check
from flexgroup.trace import schema
from flexgroup.trace.history import History, Ints
from flexgroup.trace.reader import ints, load_history, read_events
from flexgroup.trace.run import Run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexgroup.pipeline.read import TraceSet
    from flexgroup.pipeline.trace_files import TraceFiles

NOT_IN_HISTORIES = (schema.SUSPECT, schema.TIMER, schema.CHOICE)


def from_files(
    traces: TraceSet,
    files: TraceFiles,
    plans: Sequence[Plan],
    events: Mapping[str, int],
    refuse_mixed: bool,
) -> DataFrame:
    """The verdicts on these runs, for which so many events have to be read."""
    directory = str(files.directory.absolute())

    def judge(work: Work) -> pa.Table:
        run = Run(**work["run"])
        kinds = work["kinds"]
        history = load_history(Path(directory), run, kinds=kinds)
        if refuse_mixed:
            others = [kind for kind in kinds if kind in NOT_IN_HISTORIES]
            refuse_mixed_events(run.run, _steps(history, Path(directory), others))
        verdicts = check(history, work["properties"])
        return verdict_table([verdict_row(run.run, verdict) for verdict in verdicts])

    work = [
        {
            "run": asdict(files.described[plan.number]),
            "kinds": files.kinds_of(plan.run),
            "properties": plan.properties,
            "weight": events[plan.run],
        }
        for plan in plans
    ]
    return for_each_run(traces, work, judge, VERDICTS)


def _steps(history: History, directory: Path, others: Sequence[str]) -> list[tuple[Ints, Ints]]:
    """Process and step of all events of a run."""
    kept = (
        history.multicasts, history.deliveries, history.sends, history.receives,
        history.crashes, history.recoveries, history.views,
    )  # fmt: skip
    tables = [read_events(directory, history.run, kind) for kind in others]
    return [
        *((rows.process, rows.step) for rows in kept),
        *((ints(table, "process"), ints(table, "step")) for table in tables),
    ]
