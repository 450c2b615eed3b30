"""The events behind violations, found with Spark: in files of small runs, or among all events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from flexgroup.pipeline.in_memory.evidence import (
    ABOUT_MESSAGES,
    AROUND,
    COLUMNS,
    EVIDENCE,
    FAULTS,
    MEANWHILE,
    Concerned,
    Violated,
    concerned_by,
    find,
    in_evidence_order,
    requests_by_run,
    spans_of,
    violated_among,
)
from flexgroup.pipeline.reading.small_runs import for_each_run
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import nothing, rows_of, spark_schema, union

_OF_A_VERDICT = [("run", pa.string()), ("property", pa.string())]
CONCERNED = pa.schema([*_OF_A_VERDICT, ("origin", pa.int32()), ("seq", pa.int64())])
INVOLVED = pa.schema(
    [*_OF_A_VERDICT, ("process", pa.int32()), ("first", pa.int64()), ("last", pa.int64())]
)


def evidence(traces: TraceSet, verdicts: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return the table of EVIDENCE for these rows of verdicts, which were collected: there is one
    for each run and property, and what is shown of them does not grow with their number."""
    violated = violated_among(verdicts)
    found = evidence_of(traces, violated).toArrow() if violated else EVIDENCE.empty_table()
    return in_evidence_order(found)


def evidence_of(traces: TraceSet, violated: Iterable[Violated]) -> DataFrame:
    """Return run, property, event and COLUMNS of the events that belong to the violations."""
    concerned = concerned_by(violated, traces.described)
    small = traces.runs_to_read()
    in_small_runs = [message for message in concerned if message.run in small]
    in_others = [message for message in concerned if message.run not in small]
    found = [nothing(traces.spark, EVIDENCE)]
    if in_small_runs:
        found.append(for_each_run(traces, requests_by_run(in_small_runs), find, EVIDENCE))
    if in_others:
        found.append(_from_events(traces, in_others))
    return union(found)


def _from_events(traces: TraceSet, concerned: Sequence[Concerned]) -> DataFrame:
    wanted = f.broadcast(rows_of(traces.spark, concerned, CONCERNED))
    parts = [
        traces.events(kind, "run", *COLUMNS)
        .join(wanted, ["run", "origin", "seq"])
        .select("run", "property", f.lit(kind).alias("event"), *COLUMNS)
        for kind in ABOUT_MESSAGES
    ]
    # Few, whatever the size of the run: collected once, they say which processes are involved.
    found = union(parts).to(spark_schema(EVIDENCE)).toArrow().cast(EVIDENCE)
    spans = [
        (*violation, process, *span)
        for violation, of_run in spans_of(found).items()
        for process, span in of_run.items()
    ]
    tables = [traces.spark.createDataFrame(found)]
    if spans:
        involved = f.broadcast(rows_of(traces.spark, spans, INVOLVED))
        violations = f.broadcast(involved.select("run", "property").distinct())
        for kind in AROUND:
            events = traces.events(kind, "run", *COLUMNS)
            if kind in FAULTS:
                events = events.join(violations, "run")
            else:
                events = events.join(involved, ["run", "process"])
            if kind in MEANWHILE:
                events = events.where("step between first and last")
            tables.append(events.select("run", "property", f.lit(kind).alias("event"), *COLUMNS))
    return union(tables).to(spark_schema(EVIDENCE))
