"""The sums over messages and durations in column expressions, for runs of any length.

The same sums are counted with numpy in `flexgroup.metrics.counting`, which also says what local,
global and convoyed messages are.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from flexgroup.metrics.counting import SLOW_DETAIL
from flexgroup.metrics.sums import ALONE, ANY, CONVOYED, FIRST, LAST, MESSAGE_SUMS
from flexgroup.pipeline.measure.facts import within
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.trace import schema

MESSAGE = ("number", "origin", "seq")


def message_latencies(traces: TraceSet, facts: DataFrame) -> DataFrame:
    """Return two rows a message: `kind` FIRST and LAST delivery, the `duration` since the multicast
    in nanoseconds, null unless it is to be measured, and on the second row the MESSAGE_SUMS.

    A message is answered when every destination that never crashes has delivered it. Without
    that, there is no last delivery to speak of.
    """
    since = f.col("multicast")
    measured = within(since)
    answered = f.col("answered")
    counts: dict[str, Column] = {
        "messages": f.lit(1),
        "deliveries": f.col("deliveries"),
        "answered": answered,
        "answered_in_period": answered & within(f.col("last")),
        "foreign": f.col("foreign"),
        "slow": f.col("slow"),
        "steps": f.coalesce("steps", f.lit(0)),
    }
    first = f.struct(
        f.lit(FIRST).alias("kind"),
        f.when(measured, f.col("first") - since).alias("duration"),
        *(f.lit(0).cast("bigint").alias(name) for name in MESSAGE_SUMS),
    )
    last = f.struct(
        f.lit(LAST).alias("kind"),
        f.when(measured & answered, f.col("last") - since).alias("duration"),
        *(counts[name].cast("bigint").alias(name) for name in MESSAGE_SUMS),
    )
    messages = _messages(_handled(traces), _crashed(traces))
    return messages.join(facts, "number").select("number", f.inline(f.array(first, last)))


def _messages(handled: DataFrame, crashed: DataFrame) -> DataFrame:
    """Return one row for each message that was multicast."""
    is_destination = f.col("multicast").isNotNull()
    delivered = f.col("delivered").isNotNull()
    owed = is_destination & ~delivered & f.col("crashed").isNull()
    outsider = f.col("took_part") & ~is_destination & (f.col("process") != f.col("origin"))
    return (
        handled.join(crashed, ["number", "process"], "left")
        .groupBy(*MESSAGE)
        .agg(
            f.min("multicast").alias("multicast"),
            f.min("delivered").alias("first"),
            f.max("delivered").alias("last"),
            f.count("delivered").alias("deliveries"),
            f.max("depth").alias("steps"),
            (f.bool_or(delivered) & ~f.bool_or(owed)).alias("answered"),
            f.bool_or(outsider).alias("foreign"),
            f.bool_or("slow").alias("slow"),
        )
        .where(f.col("multicast").isNotNull())
    )


def _handled(traces: TraceSet) -> DataFrame:
    """Return one row for each message and process that is a destination of it or handled it."""
    multicasts = traces.events(schema.MULTICAST, "origin", "seq", "time", "destinations")
    deliveries = traces.events(schema.DELIVER, "origin", "seq", "process", "time", "depth")
    sends = traces.events(schema.SEND, "origin", "seq", "process", "detail")
    receives = traces.events(schema.RECEIVE, "origin", "seq", "process")
    slow = f.coalesce(f.col("detail") == SLOW_DETAIL, f.lit(False))
    elsewhere = f.col("process") != f.col("origin")
    parts = (
        multicasts.select(
            *MESSAGE,
            f.explode_outer("destinations").alias("process"),
            f.col("time").alias("multicast"),
        ),
        deliveries.select(*MESSAGE, "process", f.col("time").alias("delivered"), "depth"),
        sends.where(elsewhere | slow).select(
            *MESSAGE, "process", slow.alias("slow"), f.lit(True).alias("took_part")
        ),
        receives.where(elsewhere).select(*MESSAGE, "process", f.lit(True).alias("took_part")),
    )
    together = reduce(lambda one, more: one.unionByName(more, allowMissingColumns=True), parts)
    return together.groupBy(*MESSAGE, "process").agg(
        f.min("multicast").alias("multicast"),
        f.min("delivered").alias("delivered"),
        f.max("depth").alias("depth"),
        f.coalesce(f.bool_or("slow"), f.lit(False)).alias("slow"),
        f.coalesce(f.bool_or("took_part"), f.lit(False)).alias("took_part"),
    )


def _crashed(traces: TraceSet) -> DataFrame:
    """Return the processes that crash at some time in a run, however many these are."""
    crashes = traces.events(schema.CRASH, "process").distinct()
    return f.broadcast(crashes.withColumn("crashed", f.lit(True)))


def delivery_latencies(traces: TraceSet, facts: DataFrame) -> DataFrame:
    """Return, for each delivery of a message multicast in the measured period, a row of `kind` ANY
    and, if the message is local, one of kind ALONE or CONVOYED; `duration` is the time since the
    multicast."""
    until_now = (
        Window.partitionBy("number", "process")
        .orderBy("time")
        .rangeBetween(Window.unboundedPreceding, Window.currentRow)
    )
    convoyed = f.when(f.col("under_way") > 0, CONVOYED).otherwise(ALONE)
    kinds = f.when(f.col("is_global"), f.array(f.lit(ANY))).otherwise(f.array(f.lit(ANY), convoyed))
    return (
        _moments(_delivered(traces, facts))
        .withColumn("under_way", f.sum("change").over(until_now))
        .where(f.col("duration").isNotNull())
        .select("number", "duration", f.explode(kinds).alias("kind"))
    )


def _delivered(traces: TraceSet, facts: DataFrame) -> DataFrame:
    """Return every delivery with the multicast of its message, whether the message is global, and
    whether it is to be measured."""
    lowest, highest = (
        f.floor(member / f.col("group_size"))
        for member in (f.array_min("destinations"), f.array_max("destinations"))
    )
    multicasts = (
        traces.events(schema.MULTICAST, "origin", "seq", "time", "destinations")
        .join(facts, "number")
        .select(
            *MESSAGE,
            f.col("time").alias("multicast"),
            within(f.col("time")).alias("is_measured"),
            (lowest != highest).alias("is_global"),
        )
    )
    deliveries = traces.events(schema.DELIVER, "origin", "seq", "process", "time")
    return deliveries.join(multicasts, [*MESSAGE])


def _moments(delivered: DataFrame) -> DataFrame:
    """Return, for each destination of a message, a row at its multicast, with the `duration` until
    it is delivered there, if that is to be measured; and for a global message one at its delivery.
    `change` is by how many more or fewer global messages are then under way."""
    is_global = f.col("is_global")
    at_multicast = f.struct(
        f.col("multicast").alias("time"),
        is_global.cast("int").alias("change"),
        f.when(f.col("is_measured"), f.col("time") - f.col("multicast")).alias("duration"),
    )
    at_delivery = f.struct(
        f.col("time").alias("time"),
        f.lit(-1).alias("change"),
        f.lit(None).cast("bigint").alias("duration"),
    )
    moments = f.when(is_global, f.array(at_multicast, at_delivery)).otherwise(f.array(at_multicast))
    return delivered.select("number", "process", "is_global", f.inline(moments))
