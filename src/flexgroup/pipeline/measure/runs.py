"""The table of measures: one row a run, all runs of a trace set in one job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from flexgroup.pipeline.measure.deliveries import ALONE, ANY, CONVOYED, delivery_latencies
from flexgroup.pipeline.measure.durations import STATISTICS, of_kind, statistics
from flexgroup.pipeline.measure.facts import SECOND, run_facts
from flexgroup.pipeline.measure.messages import COUNTED, FIRST, LAST, message_latencies
from flexgroup.pipeline.measure.traffic import traffic
from flexgroup.trace import schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from flexgroup.pipeline.read import TraceSet

POINT = (
    "world",
    "stack",
    "options",
    "processes",
    "clients",
    "groups",
    "workload",
    "network",
    "faults",
    "software",
)
"""What repetitions of a run have in common."""

LATENCIES = {"latency_last": LAST, "latency_first": FIRST, "latency_delivery": ANY}


def measure_runs(traces: TraceSet) -> DataFrame:
    """The columns that describe each run, and its METRICS."""
    facts = run_facts(traces)
    latencies = message_latencies(traces, facts).unionByName(
        delivery_latencies(traces, facts), allowMissingColumns=True
    )
    by_run = (
        statistics(latencies, COUNTED)
        .groupBy("number")
        .agg(
            *(f.sum(name).alias(name) for name in COUNTED),
            *(
                of_kind(kind, statistic).alias(f"{name}_{statistic}")
                for name, kind in LATENCIES.items()
                for statistic in STATISTICS
            ),
            of_kind(ALONE, "mean").alias("local_alone"),
            of_kind(CONVOYED, "mean").alias("local_convoyed"),
            of_kind(ALONE, "count").alias("alone_count"),
            of_kind(CONVOYED, "count").alias("convoyed_count"),
        )
    )
    measured = (
        traces.runs.join(facts.drop("processes"), "number")
        .join(by_run, "number", "left")
        .join(traffic(traces, facts), "number", "left")
        .join(_crashed(traces), "number", "left")
    )
    return measured.select(
        "run",
        *POINT,
        "seed",
        "outcome",
        *(metric.alias(name) for name, metric in _metrics().items()),
    )


def _crashed(traces: TraceSet) -> DataFrame:
    """How many processes crash in each run in which any does."""
    crashes = traces.events(schema.CRASH, "process")
    return f.broadcast(crashes.groupBy("number").agg(f.count_distinct("process").alias("crashed")))


def _metrics() -> dict[str, Column]:
    """Each metric of docs/measures.md in terms of the sums over a run."""
    messages = f.coalesce("messages", f.lit(0))
    packets = f.coalesce("packets", f.lit(0))
    local = f.coalesce("alone_count", f.lit(0)) + f.coalesce("convoyed_count", f.lit(0))
    return {
        "messages": messages,
        "deliveries": f.coalesce("deliveries", f.lit(0)),
        "unanswered": messages - f.coalesce("answered", f.lit(0)),
        "crashed": f.coalesce("crashed", f.lit(0)),
        "throughput": f.coalesce(
            f.col("answered_in_period") / _some(f.col("length")) * SECOND, f.lit(0.0)
        ),
        **{
            f"{name}_{statistic}": f.col(f"{name}_{statistic}")
            for name in LATENCIES
            for statistic in STATISTICS
        },
        "local_alone": f.col("local_alone"),
        "local_convoyed": f.col("local_convoyed"),
        "convoy_delay": f.col("local_convoyed") - f.col("local_alone"),
        "convoyed": f.coalesce("convoyed_count", f.lit(0)) / _some(local),
        "steps": _each(f.col("steps"), messages),
        "volume": _where_recorded(_each(packets, messages)),
        "volume_bytes": _where_recorded(
            _each(f.col("header_bytes") + f.col("payload_bytes"), messages, packets)
        ),
        "header_bytes": _where_recorded(_each(f.col("header_bytes"), packets)),
        "genuine": _where_recorded(1 - _each(f.col("foreign"), messages)),
        "fast": _where_recorded(1 - _each(f.col("slow"), messages)),
        "queue_mean": f.col("queue_sum") / _some(f.col("received")) / SECOND,
        "queue_max": f.col("queue_max") / SECOND,
        "queued": f.col("queued") / _some(f.col("received")),
        "busy": f.col("busy"),
        "busiest": f.col("busiest"),
    }


METRICS = (
    "messages",
    "deliveries",
    "unanswered",
    "crashed",
    "throughput",
    *(f"{name}_{statistic}" for name in LATENCIES for statistic in STATISTICS),
    "local_alone",
    "local_convoyed",
    "convoy_delay",
    "convoyed",
    "steps",
    "volume",
    "volume_bytes",
    "header_bytes",
    "genuine",
    "fast",
    "queue_mean",
    "queue_max",
    "queued",
    "busy",
    "busiest",
)


def _each(sum_of_all: Column, *counts: Column) -> Column:
    """The sum divided by the first count, and 0 where any count is."""
    some = counts[0] > 0
    for count in counts[1:]:
        some &= count > 0
    return f.when(some, sum_of_all / counts[0]).otherwise(f.lit(0.0))


def _some(divisor: Column) -> Column:
    """What to divide by: null instead of zero."""
    return f.nullif(divisor, f.lit(0))


def _where_recorded(metric: Column) -> Column:
    """Null in a run that has messages and no packets: they were not recorded."""
    silent = f.col("messages").isNull()
    return f.when(silent | f.coalesce("recorded", f.lit(False)), metric)
