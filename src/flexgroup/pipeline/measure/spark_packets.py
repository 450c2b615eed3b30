"""The sums over packets and work in column expressions, for runs of any length.

The same sums are counted with numpy in `flexgroup.metrics.counting`.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from flexgroup.metrics.sums import CLIENT, PACKET_SUMS, PROCESS
from flexgroup.pipeline.measure.facts import within
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.trace import schema

AT = ("number", "process")
SUMMED = tuple(name for name in PACKET_SUMS if name != "queue_max")
COST_SUMS = ("rows", "sends", "receives", "wire_bytes", "answers")


def packets_by_type(traces: TraceSet) -> DataFrame:
    """Count what was sent in each run by the type of packet, and by whom: processes or clients."""
    from_process = f.col("process") < f.col("processes")
    runs = f.broadcast(traces.runs.select("run", "number", "processes"))
    return (
        traces.events(schema.SEND, "process", "packet", "header_bytes", "payload_bytes")
        .join(runs, "number")
        .withColumn("sender", f.when(from_process, PROCESS).otherwise(CLIENT))
        .groupBy("run", "sender", "packet")
        .agg(
            f.count("*").alias("packets"),
            f.sum("header_bytes").alias("header_bytes"),
            f.sum("payload_bytes").alias("payload_bytes"),
        )
    )


def packet_sums(traces: TraceSet, facts: DataFrame) -> DataFrame:
    """Return the PACKET_SUMS and WORK_SUMS of each run with packets or answers."""
    parts = (_sent(traces), _received(traces, facts), _answers(traces, facts))
    work = reduce(lambda one, more: one.unionByName(more, allowMissingColumns=True), parts)
    by_process = (
        # By process and then by run: no need to move twice what is already small.
        work.repartition("number")
        .groupBy(*AT)
        .agg(
            *(f.sum(name).alias(name) for name in SUMMED),
            *(f.coalesce(f.sum(name), f.lit(0)).alias(name) for name in COST_SUMS),
            f.max("queue_max").alias("queue_max"),
            f.max("latest").alias("latest"),
        )
        .join(facts, "number")
    )
    inside = f.col("process") < f.col("processes")
    spent = f.when(
        inside,
        (f.col("sends") + f.col("answers")) * f.col("send_cost")
        + f.col("receives") * f.col("receive_cost")
        + f.col("wire_bytes") * f.col("byte_cost"),
    )
    return by_process.groupBy("number").agg(
        *(f.sum(f.when(inside, f.col(name))).alias(name) for name in SUMMED),
        f.max(f.when(inside, f.col("queue_max"))).alias("queue_max"),
        f.sum("rows").alias("rows"),
        f.sum(spent).alias("spent"),
        f.max(spent).alias("most_spent"),
        f.max("latest").alias("latest"),
    )


def _sent(traces: TraceSet) -> DataFrame:
    """Return one row for each process or client that sent, with sums over its packets."""
    about = f.col("origin").isNotNull()
    return (
        traces.events(schema.SEND, "process", "peer", "origin", "header_bytes", "payload_bytes")
        .groupBy(*AT)
        .agg(
            f.count("*").alias("rows"),
            f.count(f.when(about, 1)).alias("packets"),
            f.sum(f.when(about, f.col("header_bytes"))).alias("header_bytes"),
            f.sum(f.when(about, f.col("payload_bytes"))).alias("payload_bytes"),
            f.count(f.when(_travels(), 1)).alias("sends"),
            f.sum(f.when(_travels(), _wire_bytes())).alias("wire_bytes"),
        )
    )


def _received(traces: TraceSet, facts: DataFrame) -> DataFrame:
    """Return the same for what was received; waiting counts in the measured period only."""
    queued = f.when(within(f.col("time")), f.col("queued"))
    return (
        traces.events(
            schema.RECEIVE, "process", "peer", "time", "queued", "header_bytes", "payload_bytes"
        )
        .join(facts, "number")
        .groupBy(*AT)
        .agg(
            f.count("*").alias("rows"),
            f.count(f.when(_travels(), 1)).alias("receives"),
            f.sum(f.when(_travels(), _wire_bytes())).alias("wire_bytes"),
            f.count(queued).alias("received"),
            f.sum(queued).alias("queue_sum"),
            f.max(queued).alias("queue_max"),
            f.count(f.when(queued > 0, 1)).alias("queued"),
            f.max("time").alias("latest"),
        )
    )


def _travels() -> Column:
    """Tell whether a packet comes from elsewhere: one to oneself costs nothing."""
    return f.coalesce(f.col("process") != f.col("peer"), f.lit(True))


def _wire_bytes() -> Column:
    return f.coalesce("header_bytes", f.lit(0)) + f.coalesce("payload_bytes", f.lit(0))


def _answers(traces: TraceSet, facts: DataFrame) -> DataFrame:
    """Count how often each process answered a client: a packet each that no trace records."""
    from_client = f.col("origin") >= f.col("processes")
    all_answer = (
        traces.events(schema.DELIVER, "process", "origin")
        .join(facts, "number")
        .where(from_client & ~f.col("last_answers"))
        .select(*AT)
    )
    last_answers = (
        traces.events(schema.MULTICAST, "origin", "destinations")
        .join(facts, "number")
        .where(from_client & f.col("last_answers"))
        .select("number", f.array_max("destinations").alias("process"))
    )
    return all_answer.union(last_answers).groupBy(*AT).agg(f.count("*").alias("answers"))
