"""What is to be known of each run before its events are counted: one row a run.

The measured period ends when the clients stop, and the first fifth before that is warm-up. The
simulator records how long its clients multicast, from time 0; in other worlds the first and the
last multicast tell. A run without clients, whose members multicast as planned, is measured whole:
from the first multicast to the last delivery. What a packet costs, only the simulator's networks
say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import reduce
from math import ceil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as f

from flexgroup.core.errors import UsageError
from flexgroup.protocols.catalogue import LAST, parse_stack
from flexgroup.trace import schema
from flexgroup.worlds.simulator.networks import parse_network

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from flexgroup.pipeline.read import TraceSet
    from flexgroup.trace.reader import Run

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
        "byte_cost_ps": pa.int64(),
        "last_answers": pa.bool_(),
    }
)

Period = tuple[int, int, float]
"""The first nanosecond, the first that is too late, and the exact length in nanoseconds.

The bounds are integers because doubles that count nanoseconds since 1970 are 256 apart.
"""
Costs = tuple[int, int, int, bool]
UNKNOWN = (None, None, None, None)


def run_facts(traces: TraceSet) -> DataFrame:
    """`begin`, `end` and `length` of the measured period, `group_size`, and costs or null."""
    runs = dict(enumerate(traces.described))
    told = {number: period for number, run in runs.items() if (period := _told(run)) is not None}
    periods = told if len(told) == len(runs) else {**_seen(traces), **told}
    planned = {n for n, run in runs.items() if run.world == "simulator" and run.clients == 0}
    if planned:
        whole = _whole(traces)
        periods = {**periods, **{number: whole[number] for number in planned & whole.keys()}}
    rows = [
        (
            number,
            run.processes,
            *periods.get(number, (0, 0, 0.0)),
            _group_size(run.workload),
            *(_costs(run) or UNKNOWN),
        )
        for number, run in runs.items()
    ]
    columns = [list(column) for column in zip(*rows, strict=True)]
    return f.broadcast(traces.spark.createDataFrame(pa.Table.from_arrays(columns, schema=COLUMNS)))


def within(time: Column) -> Column:
    """Whether a time lies in the measured period."""
    return (time >= f.col("begin")) & (time < f.col("end"))


def _told(run: Run) -> Period | None:
    if run.world != "simulator":
        return None
    try:
        duration = float(json.loads(run.options)["duration"])
        begin, end = duration / WARM_UP * SECOND, duration * SECOND
        return ceil(begin), ceil(end), end - begin
    except (ValueError, OverflowError, KeyError, TypeError):
        return None


def _seen(traces: TraceSet) -> Mapping[int, Period]:
    periods = {}
    for row in _spans(traces, schema.MULTICAST):
        whole = row.last + 1 - row.first
        warm_up = -(-whole // WARM_UP)
        periods[row.number] = (row.first + warm_up, row.last + 1, whole - whole / WARM_UP)
    return periods


def _whole(traces: TraceSet) -> Mapping[int, Period]:
    rows = _spans(traces, schema.MULTICAST, schema.DELIVER)
    return {row.number: (row.first, row.last + 1, float(row.last + 1 - row.first)) for row in rows}


def _spans(traces: TraceSet, *kinds: str) -> list[Any]:
    """When the first and the last event of these kinds happened in each run: a row a run."""
    events = (traces.events(kind, "time") for kind in kinds)
    return (
        reduce(lambda one, other: one.unionAll(other), events)
        .groupBy("number")
        .agg(f.min("time").alias("first"), f.max("time").alias("last"))
        .collect()
    )


def _group_size(workload: str | None) -> int:
    groups = re.match(r"partitioned:(\d+)x", workload or "")
    return int(groups[1]) if groups else 1


def _costs(run: Run) -> Costs | None:
    if run.world != "simulator":
        return None
    try:
        network = parse_network(run.network or "")
        last_answers = parse_stack(run.stack).top.answers == LAST
    except UsageError:
        return None
    return network.send_cost, network.receive_cost, network.byte_cost_ps, last_answers
