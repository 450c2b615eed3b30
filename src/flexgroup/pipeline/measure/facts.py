"""What Spark is told of each run before its events are counted: a row for each run.

What a packet costs, the cost model of a run says, if it has one.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from flexgroup.metrics.counting import PICOSECONDS
from flexgroup.metrics.period import Span, group_size, kinds_of_span, measured_period
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import union
from flexgroup.trace.cost_models import parse_cost_model

COLUMNS = pa.schema(
    {
        "number": pa.int32(),
        "processes": pa.int32(),
        "begin": pa.int64(),
        "end": pa.int64(),
        "length": pa.float64(),
        "group_size": pa.int32(),
        "send_cost": pa.int64(),
        "receive_cost": pa.int64(),
        "byte_cost": pa.int64(),
        "last_answers": pa.bool_(),
    }
)


def run_facts(traces: TraceSet) -> DataFrame:
    """Return `begin`, `end` and `length` of the measured period, `group_size`, and what packets
    cost, or null."""
    asked = [kinds_of_span(run) for run in traces.described]
    spans = {kinds: _spans(traces, kinds) for kinds in set(asked) if kinds}
    rows = []
    for number, (run, kinds) in enumerate(zip(traces.described, asked, strict=True)):
        begin, end, length = measured_period(run, spans[kinds].get(number) if kinds else None)
        model = parse_cost_model(run.cost_model)
        rows.append(
            {
                "number": number,
                "processes": run.processes,
                "begin": begin,
                "end": end,
                "length": length,
                "group_size": group_size(run),
                "send_cost": model and model.send * PICOSECONDS,
                "receive_cost": model and model.receive * PICOSECONDS,
                "byte_cost": model and model.byte,
                "last_answers": model and model.last_answers,
            }
        )
    return f.broadcast(traces.spark.createDataFrame(pa.Table.from_pylist(rows, schema=COLUMNS)))


def within(time: Column) -> Column:
    """Tell whether a time lies in the measured period."""
    return (time >= f.col("begin")) & (time < f.col("end"))


def _spans(traces: TraceSet, kinds: tuple[str, ...]) -> Mapping[int, Span]:
    """Return the span of the events of these kinds in each run that has any."""
    rows = (
        union(traces.events(kind, "time") for kind in kinds)
        .groupBy("number")
        .agg(f.min("time").alias("first"), f.max("time").alias("last"))
        .collect()
    )
    return {row.number: (row.first, row.last) for row in rows}
