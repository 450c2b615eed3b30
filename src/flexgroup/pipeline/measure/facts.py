"""What is to be known of each run before its events are counted: one row a run.

The measured period ends when the clients stop, and the first fifth before that is warm-up. Where
the options of a run do not tell the `duration` for which its clients multicast, from time 0 on, the
first and the last multicast tell. A run with a duration and without clients, whose members
multicast as planned, is measured whole: from the first multicast to the last delivery. What a
packet costs, the cost model of a run says, if it has one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import reduce
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from flexgroup.trace import schema
from flexgroup.trace.cost_models import parse_cost_model

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from flexgroup.pipeline.read import TraceSet
    from flexgroup.trace.run import Run

SECOND = 1_000_000_000
WARM_UP = 5
"""One part in so many of the time in which clients multicast."""

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

Span = tuple[int, int]
"""When the first and the last of some events happened."""
Period = tuple[int, int, float]
"""The first nanosecond, the first that is too late, and the exact length in nanoseconds.

The bounds are integers because doubles that count nanoseconds since 1970 are 256 apart.
"""
NO_PERIOD = (0, 0, 0.0)
UNKNOWN = (None, None, None, None)


class Costs(NamedTuple):
    """Of a packet and of a byte of it, in picoseconds, in which sums are exact; and whether it is
    the last destination alone that answers clients."""

    send: int
    receive: int
    byte: int
    last_answers: bool


def run_facts(traces: TraceSet) -> DataFrame:
    """`begin`, `end` and `length` of the measured period, `group_size`, and costs or null."""
    from pyspark.sql import functions as f

    asked = [kinds_of_span(run) for run in traces.described]
    spans = {kinds: _spans(traces, kinds) for kinds in set(asked) if kinds}
    rows = [
        (
            number,
            run.processes,
            *period(run, spans[kinds].get(number) if kinds else None),
            group_size(run),
            *(costs(run) or UNKNOWN),
        )
        for number, (run, kinds) in enumerate(zip(traces.described, asked, strict=True))
    ]
    columns = [list(column) for column in zip(*rows, strict=True)]
    return f.broadcast(traces.spark.createDataFrame(pa.Table.from_arrays(columns, schema=COLUMNS)))


def within(time: Column) -> Column:
    """Whether a time lies in the measured period."""
    from pyspark.sql import functions as f

    return (time >= f.col("begin")) & (time < f.col("end"))


def kinds_of_span(run: Run) -> tuple[str, ...]:
    """The kinds of events that tell the measured period, if the description of the run does not."""
    if _is_planned(run):
        return (schema.MULTICAST, schema.DELIVER)
    return (schema.MULTICAST,) if _told(run) is None else ()


def period(run: Run, span: Span | None) -> Period:
    """The measured period; `span` is that of the events of `kinds_of_span`, if there are any."""
    if span is None:
        return _told(run) or NO_PERIOD
    first, end = span[0], span[1] + 1
    whole = end - first
    if _is_planned(run):
        return first, end, float(whole)
    return first - (-whole // WARM_UP), end, whole - whole / WARM_UP


def _is_planned(run: Run) -> bool:
    return run.clients == 0 and _told(run) is not None


def _told(run: Run) -> Period | None:
    """The period that a run's options tell, if they tell for how long clients multicast."""
    try:
        duration = float(json.loads(run.options)["duration"])
        begin, end = duration / WARM_UP * SECOND, duration * SECOND
        return ceil(begin), ceil(end), end - begin
    except (ValueError, OverflowError, KeyError, TypeError):
        return None


def _spans(traces: TraceSet, kinds: tuple[str, ...]) -> Mapping[int, Span]:
    """The span of the events of these kinds in each run that has any: a row a run."""
    from pyspark.sql import functions as f

    events = (traces.events(kind, "time") for kind in kinds)
    rows = (
        reduce(lambda one, other: one.unionAll(other), events)
        .groupBy("number")
        .agg(f.min("time").alias("first"), f.max("time").alias("last"))
        .collect()
    )
    return {row.number: (row.first, row.last) for row in rows}


def group_size(run: Run) -> int:
    groups = re.match(r"partitioned:(\d+)x", run.workload or "")
    return int(groups[1]) if groups else 1


def costs(run: Run) -> Costs | None:
    model = parse_cost_model(run.cost_model)
    if model is None:
        return None
    return Costs(model.send * 1000, model.receive * 1000, model.byte, model.last_answers)
