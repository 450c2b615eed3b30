"""The events that verdicts on large runs are told from: those about a few messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from flexgroup.pipeline.in_memory.event_rows import CODES
from flexgroup.pipeline.in_memory.packed_rows import Batches, Stage
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import rows_of, spark_schema, union
from flexgroup.pipeline.verify.event_rows import EXPLAINED_COLUMNS, FAULTS, ORDERS, event_rows
from flexgroup.pipeline.verify.file_pieces import frame_of_pieces, read_pieces
from flexgroup.pipeline.verify.message_checks import FAR
from flexgroup.pipeline.verify.order_checks import COMPONENT
from flexgroup.pipeline.verify.parted_events import READ
from flexgroup.pipeline.verify.small_histories import (
    TASK_COLUMNS,
    TOPIC_COLUMNS,
    WHOLE,
    Task,
    with_topic,
)
from flexgroup.properties.indexed_history import Flags
from flexgroup.properties.kernels.grouping import lookup
from flexgroup.trace.history import Ints, by_key
from flexgroup.trace.reader import ints, messages
from flexgroup.trace.schema import VIEW

MOST_BROADCAST = 1_000_000
"""How many messages are brought to all tasks, at most: a few dozen megabytes."""

MESSAGE_COLUMNS = pa.schema({"number": pa.int32(), "topic": pa.string(), "message": pa.int64()})

Chosen = Mapping[int, Mapping[str, Ints]]
"""The messages of each topic of each run, sorted."""


def told_events(
    traces: TraceSet,
    notes: DataFrame,
    tasks: Sequence[Task],
    named: Sequence[tuple[int, str, int]],
    are_few: bool,
) -> DataFrame:
    """Return the events of these tasks, with TOPIC_COLUMNS: those of messages in cyclic components,
    of which there are few if so told, and of other messages by number of the run and topic."""
    spark = traces.spark
    topics = f.broadcast(rows_of(spark, tasks, TASK_COLUMNS).select("number", "topic"))
    in_components = (
        notes.where(f.col("about").isin(COMPONENT, FAR))
        .select("number", f.lit(COMPONENT).alias("topic"), f.explode("messages").alias("message"))
        .join(topics, ["number", "topic"])
    )
    # What was skipped may be in a component as well.
    chosen = rows_of(spark, named, MESSAGE_COLUMNS).unionAll(in_components).distinct()
    orders = event_rows(traces, ORDERS, EXPLAINED_COLUMNS)
    others = event_rows(traces, (*FAULTS, VIEW), EXPLAINED_COLUMNS)
    parts = [with_topic(others.join(topics, "number"))]
    if are_few and traces.files is not None:
        by_topic = _by_topic(chosen.toArrow())
        parts += [_from_files(traces, by_topic)] if by_topic else []
    else:
        chosen = f.broadcast(chosen) if are_few else chosen
        parts.append(with_topic(orders.join(chosen, ["number", "message"])))
    if any(topic == WHOLE for _, topic, _ in tasks):
        whole = topics.where(f.col("topic") == WHOLE)
        parts.append(with_topic(orders.join(whole, "number")))
    return union(parts)


def _by_topic(chosen: pa.Table) -> Chosen:
    chosen = chosen.sort_by("message")
    topic, message = chosen.column("topic").combine_chunks(), ints(chosen, "message")
    found: dict[int, dict[str, Ints]] = {}
    for number, rows in by_key(ints(chosen, "number")):
        codes = topic.take(pa.array(rows)).dictionary_encode()
        for code, name in enumerate(codes.dictionary.to_pylist()):
            found.setdefault(number, {})[name] = message[rows[codes.indices.to_numpy() == code]]
    return found


def _from_files(traces: TraceSet, chosen: Chosen) -> DataFrame:
    present = sorted(traces.kinds.intersection(ORDERS))
    pieces, numbers = frame_of_pieces(traces, chosen, present)
    return pieces.mapInArrow(_told(chosen, numbers), spark_schema(TOPIC_COLUMNS))


def _told(chosen: Chosen, numbers: Mapping[str, int]) -> Stage:
    """Return the stage from PIECES of files to the events of the chosen messages: reading them here
    takes less time than having Spark read them and join."""

    def stage(batches: Batches) -> Batches:
        read = read_pieces(batches, numbers, lambda kind: (*READ[kind], "name"))
        for kind, number, events in read:
            message = messages(events)
            for run, rows in by_key(number):
                for topic, wanted in chosen[run].items():
                    is_wanted: Flags = lookup(wanted, message[rows])[1]
                    at = rows[is_wanted]
                    told = events.take(pa.array(at)).append_column("message", pa.array(message[at]))
                    yield from _with_topic(told, kind, run, topic).to_batches()

    return stage


def _with_topic(events: pa.Table, kind: str, number: int, topic: str) -> pa.Table:
    """Return events of a kind, a run and a topic with TOPIC_COLUMNS."""
    count = events.num_rows
    same = {"number": number, "event": CODES[kind], "topic": topic}
    columns = []
    for field in TOPIC_COLUMNS:
        if field.name in same:
            column = pa.repeat(pa.scalar(same[field.name], field.type), count)
        elif field.name in events.column_names:
            column = events.column(field.name).cast(field.type)
        else:
            column = pa.nulls(count, field.type)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=TOPIC_COLUMNS)
