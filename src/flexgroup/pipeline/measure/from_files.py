"""Runs that fit into one task, measured there from their files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flexgroup.pipeline.each_run import Work, for_each_run
from flexgroup.pipeline.measure import facts
from flexgroup.pipeline.measure.durations import histogram
from flexgroup.pipeline.measure.run_messages import Casts, delivery_durations, message_counts
from flexgroup.pipeline.measure.run_packets import (
    RECEIVED,
    SENT,
    packets_by_type,
    queue_counts,
    sent_counts,
    slow_messages,
    work_counts,
    work_of_answers,
    work_of_packets,
)
from flexgroup.pipeline.measure.sums import PACKETS, SUMS, of_durations
from flexgroup.trace import schema
from flexgroup.trace.history import History
from flexgroup.trace.reader import ints, load_history, messages, read_columns
from flexgroup.trace.run import Run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexgroup.pipeline.read import TraceSet
    from flexgroup.pipeline.trace_files import TraceFiles

BY_TYPE = "packets_by_type"

COUNTED = SUMS.append(pa.field(BY_TYPE, pa.list_(pa.struct(list(PACKETS)[1:]))))
"""The sums of each run, and its rows of PACKETS."""


def from_files(traces: TraceSet, files: TraceFiles, events: Mapping[str, int]) -> DataFrame:
    """What is COUNTED in these runs, for which so many events have to be read."""
    directory = str(files.directory.absolute())

    def count(work: Work) -> pa.Table:
        counted = count_run(Path(directory), Run(**work["run"]), work["kinds"])
        return pa.Table.from_pylist([counted], COUNTED)

    work = [
        {"run": asdict(run), "kinds": files.kinds_of(run.run), "weight": events[run.run]}
        for run in files.described
        if run.run in events
    ]
    return for_each_run(traces, work, count, COUNTED)


def count_run(directory: Path, run: Run, kinds: Collection[str]) -> dict[str, Any]:
    """What is COUNTED in a run that has events of these kinds only."""

    def read(kind: str, columns: Sequence[str]) -> pa.Table:
        return read_columns(directory, run.run, kind, columns) if kind in kinds else pa.table({})

    history = load_history(directory, run, packets=False, kinds=kinds)
    period = facts.period(run, _span(history, facts.kinds_of_span(run)))
    casts = Casts.of(history.multicasts)
    is_foreign = np.zeros(len(casts.identity), dtype=bool)
    counted: dict[str, Any] = {"run": run.run, "length": period[2], "rows": 0}
    # What is large is read once, and forgotten before the next is read.
    work = []
    costs = facts.costs(run)
    for kind, columns in ((schema.SEND, SENT), (schema.RECEIVE, RECEIVED)):
        packets = read(kind, columns)
        is_foreign[casts.handled_by_outsiders(messages(packets), ints(packets, "process"))] = True
        counted["rows"] += packets.num_rows
        if kind == schema.SEND:
            counted |= sent_counts(packets, run.processes)
            counted["slow"] = int(casts.concerns(slow_messages(packets)).sum())
            counted[BY_TYPE] = packets_by_type(packets, run.processes)
        else:
            counted |= queue_counts(packets, run.processes, period)
        if costs:
            cost = costs.send if kind == schema.SEND else costs.receive
            work.append(work_of_packets(packets, run.processes, cost, costs.byte))
    if costs:
        work.append(work_of_answers(history, costs.send, costs.last_answers))
        counted |= work_counts(work)
    of_messages, durations = message_counts(casts, history, period)
    durations |= delivery_durations(casts, history.deliveries, facts.group_size(run), period)
    return {
        **counted,
        **of_messages,
        **of_durations({kind: histogram(rows) for kind, rows in durations.items()}),
        "foreign": int(is_foreign.sum()),
        "crashed": len(np.unique(history.crashes.process)),
    }


def _span(history: History, kinds: Collection[str]) -> facts.Span | None:
    times = {schema.MULTICAST: history.multicasts.time, schema.DELIVER: history.deliveries.time}
    found = [times[kind] for kind in kinds if len(times[kind])]
    if not found:
        return None
    return min(int(time.min()) for time in found), max(int(time.max()) for time in found)
