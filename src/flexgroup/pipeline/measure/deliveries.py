"""What each destination waits for a message, and whether global messages make local ones wait.

A message is *local* if its destinations lie in one group, else *global*. Groups are those of the
workload `partitioned:GxC`; in other workloads every process is a group of its own. A local message
is *convoyed* at a destination if, when it is multicast, that destination has yet to deliver some
global message that was multicast before. The moment of the multicast decides, and not all the time
until the delivery, because a message that waits long for whatever reason would meet more messages
in that time, and seem convoyed for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

from flexgroup.pipeline.measure.facts import within
from flexgroup.pipeline.measure.messages import MESSAGE
from flexgroup.pipeline.measure.sums import ALONE, ANY, CONVOYED
from flexgroup.trace import schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexgroup.pipeline.read import TraceSet


def delivery_latencies(traces: TraceSet, facts: DataFrame) -> DataFrame:
    """For each delivery of a message multicast in the measured period a row of `kind` ANY, and,
    if the message is local, one of kind ALONE or CONVOYED; `duration` since the multicast."""
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
    """Every delivery with the multicast of its message, whether that is global, and whether it is
    to be measured."""
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
    """At each destination a row when a message is multicast, with the `duration` until it is
    delivered there, if that is to be measured; and for a global message one when it is delivered.
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
