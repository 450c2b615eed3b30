"""Minimality: outsiders found with column expressions, told by the plain-Python property."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from flexgroup.core.message import NO_MESSAGE, ORIGIN_BITS, ORIGIN_MASK
from flexgroup.pipeline.in_memory.verdict_table import verdict_row, verdict_table
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import rows_of, union
from flexgroup.pipeline.verify.check_plans import CheckPlan
from flexgroup.pipeline.verify.event_rows import EXPLAINED_COLUMNS, PACKETS, event_rows
from flexgroup.pipeline.verify.small_histories import (
    TASK_COLUMNS,
    judge_groups,
    task_of,
    task_rows,
    with_topic,
)
from flexgroup.properties.minimality import NAME, NOTHING_SEEN, checked, undecided
from flexgroup.properties.verdict import Outcome, Verdict
from flexgroup.trace.schema import MULTICAST, NAMED

NUMBERS = pa.schema({"number": pa.int32()})
FIRST_LOST = pa.schema(
    {**dict.fromkeys(("number", "origin"), pa.int32()), "first_lost": pa.int64()}
)
FAULTY_COLUMNS = pa.schema({"faulty_in": pa.int32(), "faulty": pa.int32()})
"""The number of a run, and a process of it that is faulty by design."""


def minimality(traces: TraceSet, plans: Sequence[CheckPlan]) -> DataFrame:
    """Return the verdicts on minimality of the runs that are to be checked for it."""
    wanted = {plan.number: plan for plan in plans if NAME in plan.properties}
    numbers = rows_of(traces.spark, [(number,) for number in wanted], NUMBERS)
    packets = (
        event_rows(traces, PACKETS, EXPLAINED_COLUMNS)
        .where(f.col("message") != NO_MESSAGE)
        .join(f.broadcast(numbers), "number")
    )
    faulty = [(number, process) for number, plan in wanted.items() for process in plan.faulty]
    if faulty:
        packets = _between_correct(packets, rows_of(traces.spark, faulty, FAULTY_COLUMNS))
    passed = packets.groupBy("number").agg(f.count("*").alias("passed"))
    outsiders = _outsiders(traces, packets, plans)
    first = (
        outsiders.where("not is_unclear")
        .groupBy("number")
        .agg(f.count("*").alias("pairs"), f.min("earliest").alias("earliest"))
    )
    unclear = (
        outsiders.where("is_unclear")
        .groupBy("number")
        .agg(f.count_distinct("message").alias("unclear"))
    )
    rows = passed.join(first, "number", "left").join(unclear, "number", "left")
    found = {row.number: row for row in rows.collect()}
    verdicts, violated = [], []
    for number, plan in wanted.items():
        row = found.get(number)
        if row is None:
            verdict = Verdict(NAME, Outcome.UNKNOWN, 0, None, NOTHING_SEEN)
        elif row.pairs is None and row.unclear:
            verdict = Verdict(NAME, Outcome.UNKNOWN, 0, None, undecided(plan, row.unclear))
        elif row.pairs is None:
            verdict = Verdict(NAME, Outcome.HOLDS, 0, None, checked(row.passed))
        else:
            task = task_of(plan, NAME, {NAME: {"pairs": row.pairs}})
            violated.append((*task, row.earliest.message))
            continue
        verdicts.append(verdict_row(plan.run, verdict))
    decided = traces.spark.createDataFrame(verdict_table(verdicts))
    return decided.unionAll(_violated(traces, packets, violated)) if violated else decided


def _between_correct(packets: DataFrame, faulty: DataFrame) -> DataFrame:
    """The packets that neither come from or go to a process that is faulty by design, nor are about
    a message of it."""
    origin = f.col("message").bitwiseAND(ORIGIN_MASK).cast("int")
    for end in (f.col("process"), f.col("peer"), origin):
        is_faulty = (packets.number == faulty.faulty_in) & (end == faulty.faulty)
        packets = packets.join(f.broadcast(faulty), is_faulty, "left_anti")
    return packets


def _outsiders(traces: TraceSet, packets: DataFrame, plans: Sequence[CheckPlan]) -> DataFrame:
    """Return pairs of a message and a process that is neither its origin nor a destination of it,
    with the first packet about the one that the other sent or received; and whether the
    destinations of the message may be lost."""
    lost = [(plan.number, *pair) for plan in plans for pair in plan.lost]
    first_lost = rows_of(traces.spark, lost, FIRST_LOST)
    multicasts = event_rows(traces, (MULTICAST,))
    # Of a message that was multicast twice, the first multicast counts.
    addressed = multicasts.groupBy("number", "message").agg(
        f.min_by("destinations", f.struct("process", "step")).alias("destinations")
    )
    others = packets.where(f.col("message").bitwiseAND(ORIGIN_MASK) != f.col("process"))
    is_destination = f.coalesce(f.array_contains("destinations", f.col("process")), f.lit(False))
    outside = (
        others.drop("destinations")
        .join(addressed, ["number", "message"], "left")
        .where(~is_destination)
        .withColumn("origin", f.col("message").bitwiseAND(ORIGIN_MASK).cast("int"))
        .join(f.broadcast(first_lost), ["number", "origin"], "left")
    )
    number = f.shiftright("message", ORIGIN_BITS)
    is_unclear = f.col("destinations").isNull() & (number >= f.col("first_lost"))
    return outside.groupBy("number", "process", "message").agg(
        f.min(f.struct("time", "event", "process", "step", "message")).alias("earliest"),
        f.bool_or(f.coalesce(is_unclear, f.lit(False))).alias("is_unclear"),
    )


def _violated(
    traces: TraceSet, packets: DataFrame, violated: list[tuple[int, str, str, int]]
) -> DataFrame:
    found = rows_of(traces.spark, violated, TASK_COLUMNS.append(pa.field("message", pa.int64())))
    chosen = f.broadcast(found.select("number", "topic", "message"))
    parts = (
        task_rows(found),
        with_topic(packets.join(chosen, ["number", "message"])),
        with_topic(
            event_rows(traces, NAMED, EXPLAINED_COLUMNS).join(chosen, ["number", "message"])
        ),
    )
    return judge_groups(union(parts))
