"""What became of each message: when it was first and last delivered, and by whom it was handled."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from flexgroup.metrics.costs import SLOW_DETAIL
from flexgroup.pipeline.measure.facts import within
from flexgroup.pipeline.measure.sums import FIRST, LAST, OF_MESSAGES
from flexgroup.trace import schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from flexgroup.pipeline.read import TraceSet

MESSAGE = ("number", "origin", "seq")


def message_latencies(traces: TraceSet, facts: DataFrame) -> DataFrame:
    """Two rows a message: `kind` FIRST and LAST delivery, the `duration` since the multicast in
    nanoseconds, null unless it is to be measured, and on the second row what counts OF_MESSAGES.

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
        *(f.lit(0).cast("bigint").alias(name) for name in OF_MESSAGES),
    )
    last = f.struct(
        f.lit(LAST).alias("kind"),
        f.when(measured & answered, f.col("last") - since).alias("duration"),
        *(counts[name].cast("bigint").alias(name) for name in OF_MESSAGES),
    )
    messages = _messages(_handled(traces), _crashed(traces))
    return messages.join(facts, "number").select("number", f.inline(f.array(first, last)))


def _messages(handled: DataFrame, crashed: DataFrame) -> DataFrame:
    """One row for each message that was multicast."""
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
    """One row for each message and process that is a destination of it or handled it."""
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
    """The processes that crash at some time in a run, however many these are."""
    crashes = traces.events(schema.CRASH, "process").distinct()
    return f.broadcast(crashes.withColumn("crashed", f.lit(True)))
