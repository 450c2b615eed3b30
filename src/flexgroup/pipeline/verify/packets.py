"""Minimality: outsiders found with column expressions, told by the plain-Python property."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from flexgroup.core.message import NO_MESSAGE, ORIGIN_MASK
from flexgroup.pipeline.verify.facts import PACKETS, TOLD_COLUMNS, facts
from flexgroup.pipeline.verify.tables import VERDICTS
from flexgroup.pipeline.verify.telling import task_rows, told, with_topic
from flexgroup.properties.minimality import NAME
from flexgroup.trace.schema import MULTICAST

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexgroup.pipeline.read import TraceSet


def minimality(traces: TraceSet, plan: DataFrame) -> DataFrame:
    """The verdicts on minimality of the runs that are to be checked for it."""
    from pyspark.sql import functions as f

    wanted = plan.where(f.array_contains("properties", NAME))
    packets = (
        facts(traces, PACKETS, TOLD_COLUMNS)
        .where(f.col("message") != NO_MESSAGE)
        .join(f.broadcast(wanted.select("number")), "number")
    )
    passed = packets.groupBy("number").agg(f.count("*").alias("passed"))
    first = (
        _outsiders(traces, packets)
        .groupBy("number")
        .agg(f.count("*").alias("pairs"), f.min("earliest").alias("earliest"))
    )
    judged = wanted.join(passed, "number", "left").join(first, "number", "left").persist()
    return _not_violated(judged).unionAll(_violated(traces, packets, judged))


def _outsiders(traces: TraceSet, packets: DataFrame) -> DataFrame:
    """Pairs of a message and a process that is neither its origin nor a destination of it, with
    the first packet about the one that the other sent or received."""
    from pyspark.sql import functions as f

    multicasts = facts(traces, (MULTICAST,))
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
    )
    return outside.groupBy("number", "process", "message").agg(
        f.min(f.struct("time", "event", "process", "step", "message")).alias("earliest")
    )


def _not_violated(judged: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    nothing = f.col("passed").isNull()
    told = f.when(nothing, f.lit("the trace has no packets about messages")).otherwise(
        f.concat(
            f.lit("checked "),
            f.col("passed").cast("string"),
            f.lit(" sends and receives of packets about messages"),
        )
    )
    return (
        judged.where(f.col("pairs").isNull())
        .select(
            "run",
            f.lit(NAME).alias("property"),
            f.when(nothing, f.lit("unknown")).otherwise(f.lit("holds")).alias("outcome"),
            f.lit(0).cast("bigint").alias("violations"),
            f.lit(None).cast("string").alias("witness"),
            told.alias("explanation"),
        )
        .select(*VERDICTS.names)
    )


def _violated(traces: TraceSet, packets: DataFrame, judged: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    violated = judged.where(f.col("pairs").isNotNull()).select(
        "number", "run", "processes", "complete", "pairs", "earliest.message"
    )
    checks = f.create_map(f.lit(NAME), f.create_map(f.lit("pairs"), f.col("pairs")))
    tasks = violated.select(
        "number",
        f.lit(NAME).alias("topic"),
        f.to_json(f.struct("run", "processes", "complete", checks.alias("checks"))).alias("task"),
    )
    chosen = f.broadcast(violated.select("number", "message", f.lit(NAME).alias("topic")))
    parts = [
        task_rows(tasks),
        with_topic(packets.join(chosen, ["number", "message"])),
        with_topic(facts(traces, (MULTICAST,)).join(chosen, ["number", "message"])),
    ]
    return told(reduce(lambda one, other: one.unionAll(other), parts))
