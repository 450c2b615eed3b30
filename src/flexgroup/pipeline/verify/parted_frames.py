"""Frames of packed events: read by tasks from the files themselves, or else by Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from flexgroup.pipeline.in_memory.packed_rows import PACKED_ROWS
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import spark_schema, union
from flexgroup.pipeline.verify.causal_windows import CausalRun
from flexgroup.pipeline.verify.event_rows import packed_message
from flexgroup.pipeline.verify.file_pieces import frame_of_pieces
from flexgroup.pipeline.verify.parted_events import READ, STEPS_ONLY, part_events, read_and_part
from flexgroup.trace.schema import DELIVER


def parted_events(
    traces: TraceSet,
    runs: Collection[int],
    kinds: Collection[str],
    parts: int,
    causal: Mapping[int, CausalRun],
) -> DataFrame:
    """Return PACKED_ROWS of the events of these runs, by their numbers, and kinds, by part of their
    messages; and by window, in places behind those of the parts, where causal order is asked for.
    """
    present = sorted(traces.kinds.intersection(kinds) | {DELIVER})
    if traces.files is not None:
        pieces, numbers = frame_of_pieces(traces, runs, present)
        stage = read_and_part(numbers, parts, causal)
        return pieces.mapInArrow(stage, spark_schema(PACKED_ROWS))
    wanted = f.col("number").isin(list(runs))
    frames = [
        _from_spark(traces, kind)
        .where(wanted)
        .mapInArrow(part_events(kind, parts, causal), spark_schema(PACKED_ROWS))
        for kind in present
    ]
    return union(frames)


def _from_spark(traces: TraceSet, kind: str) -> DataFrame:
    if kind not in READ:
        return traces.events(kind, *STEPS_ONLY)
    rows = traces.events(kind, *READ[kind]).withColumn("message", packed_message())
    return rows.drop("origin", "seq")
