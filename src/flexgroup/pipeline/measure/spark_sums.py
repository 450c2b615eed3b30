"""The sums of runs of any length in column expressions: a row for each run, all in one job.

The same sums are counted with numpy in `flexgroup.metrics.counting`, which also says what local,
global and convoyed messages are. What Spark is told of each run before its events are counted is a
row of FACTS.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from flexgroup.metrics.counting import PICOSECONDS, SLOW_DETAIL, group_numbers
from flexgroup.metrics.durations import CLASSES_PER_E_FOLD, Histogram
from flexgroup.metrics.period import Span, group_size, kinds_of_span, measured_period
from flexgroup.metrics.sums import (
    ALONE,
    ANY,
    CLIENT,
    CONVOYED,
    DURATION_SUMS,
    FIRST,
    GAP_SUMS,
    GROUP,
    KINDS,
    LAST,
    MESSAGE_SUMS,
    PACKET_SUMS,
    PROCESS,
    SUMS,
    duration_sums,
)
from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import nothing, rows_of, spark_schema, union
from flexgroup.trace import schema
from flexgroup.trace.cost_models import BY_ALL, BY_LAST, parse_cost_model
from flexgroup.trace.run_events import multicast_twice

FACTS = pa.schema(
    {
        "number": pa.int32(),
        "run": pa.string(),
        "processes": pa.int32(),
        "begin": pa.int64(),
        "end": pa.int64(),
        "length": pa.float64(),
        "group_size": pa.int32(),
        "groups": pa.list_(pa.int32()),
        "send_cost": pa.int64(),
        "receive_cost": pa.int64(),
        "byte_cost": pa.int64(),
        "answered_by": pa.string(),
    }
)

FAULTY = pa.schema({"number": pa.int32(), "process": pa.int32()})
"""The number of a run, and a process of it that is faulty by design."""

NUMBERED = pa.schema([("number", pa.int32()), *DURATION_SUMS])

MESSAGE = ("number", "origin", "seq")

AT = ("number", "process")
SUMMED = tuple(name for name in PACKET_SUMS if name != "queue_max")
COST_SUMS = ("rows", "sends", "receives", "wire_bytes", "answers")


def sums_of_runs(traces: TraceSet) -> DataFrame:
    """Return the SUMS of every run."""
    facts = _run_facts(traces)
    latencies = _message_latencies(traces, facts).unionByName(
        _delivery_latencies(traces, facts), allowMissingColumns=True
    )
    crashed = _crashed(traces).groupBy("number").agg(f.count("*").alias("crashed"))
    by_run = _classes(latencies).groupBy("number").applyInArrow(_summed, spark_schema(NUMBERED))
    return (
        traces.runs.select("run", "number")
        .join(facts.select("number", "length"), "number")
        .join(by_run, "number", "left")
        .join(_packet_sums(traces, facts), "number", "left")
        .join(f.broadcast(crashed), "number", "left")
        .join(_gaps(traces, facts), "number", "left")
        .select(*SUMS.names)
    )


def _classes(durations: DataFrame) -> DataFrame:
    """Return the histogram of the column `duration` (nanoseconds or null) for each run `number` and
    `kind` of duration, a row for each class; and the MESSAGE_SUMS."""
    duration = f.col("duration")
    fold = f.log(f.greatest(duration, f.lit(1)))
    return durations.groupBy(
        "number", "kind", f.floor(fold * CLASSES_PER_E_FOLD).alias("class")
    ).agg(
        f.count(duration).alias("count"),
        f.sum(duration).alias("total"),
        f.max(duration).alias("largest"),
        *(f.sum(name).alias(name) for name in MESSAGE_SUMS),
    )


def _summed(classes: pa.Table) -> pa.Table:
    """Return one row from all classes of a run."""
    # What has no duration is in the first class, too, and counts nothing there.
    some = classes.filter(pc.greater(classes["count"], 0)).sort_by("class")
    histograms = {}
    for kind in KINDS:
        rows = some.filter(pc.equal(some["kind"], kind))
        count, total, largest = (
            rows[name].to_numpy().astype(np.int64) for name in ("count", "total", "largest")
        )
        histograms[kind] = Histogram(count, total, largest)
    row = {
        "number": classes["number"][0].as_py(),
        **{name: pc.sum(classes[name]).as_py() for name in MESSAGE_SUMS},
        **duration_sums(histograms),
    }
    return pa.Table.from_pylist([row], NUMBERED)


def _crashed(traces: TraceSet) -> DataFrame:
    """Return the processes that crash at some time in a run: `number` and `process`, however often
    each does."""
    return traces.events(schema.CRASH, "process").distinct()


def _failing(traces: TraceSet) -> DataFrame:
    """Return those, and the processes that are faulty by design."""
    return _crashed(traces).union(_faulty(traces)).distinct()


def _faulty(traces: TraceSet) -> DataFrame:
    rows = [
        (number, process) for number, run in enumerate(traces.described) for process in run.faulty
    ]
    return rows_of(traces.spark, rows, FAULTY) if rows else nothing(traces.spark, FAULTY)


def _deliveries(traces: TraceSet, *columns: str) -> DataFrame:
    """Return the deliver events of processes that are not faulty by design."""
    events = traces.events(schema.DELIVER, "process", *columns)
    return events.join(f.broadcast(_faulty(traces)), [*AT], "left_anti")


def _gaps(traces: TraceSet, facts: DataFrame) -> DataFrame:
    """Return GAP_SUMS for each run in which something was delivered in the measured period."""
    at_a_process = Window.partitionBy(*AT).orderBy("time")
    failing = _failing(traces)
    struck = (
        failing.join(facts, "number")
        .select("number", _group(f.col("process")).alias("group"), f.lit(True).alias("struck"))
        .distinct()
    )
    by_process = (
        _deliveries(traces, "time")
        .join(facts, "number")
        .where(_within(f.col("time")))
        .join(f.broadcast(failing), [*AT], "left_anti")
        .withColumn("gap", f.col("time") - f.coalesce(f.lag("time").over(at_a_process), "begin"))
        .groupBy(*AT, _group(f.col("process")).alias("group"))
        .agg(f.greatest(f.max("gap"), f.max("end") - f.max("time")).alias("gap"))
    )
    is_struck = f.col("struck").isNotNull()
    same, elsewhere = (
        f.max(f.when(those, f.col("gap"))).alias(name)
        for name, those in zip(GAP_SUMS, (is_struck, ~is_struck), strict=True)
    )
    return (
        by_process.join(f.broadcast(struck), ["number", "group"], "left")
        .groupBy("number")
        .agg(same, elsewhere)
    )


def _run_facts(traces: TraceSet) -> DataFrame:
    """Return `begin`, `end` and `length` of the measured period, `group_size`, and what packets
    cost, or null."""
    asked = [kinds_of_span(run) for run in traces.described]
    spans = {kinds: _spans(traces, kinds) for kinds in set(asked) if kinds}
    rows = []
    for number, (run, kinds) in enumerate(zip(traces.described, asked, strict=True)):
        begin, end, length = measured_period(run, spans[kinds].get(number) if kinds else None)
        model = parse_cost_model(run.cost_model)
        rows.append(
            {
                "number": number,
                "run": run.run,
                "processes": run.processes,
                "begin": begin,
                "end": end,
                "length": length,
                "group_size": group_size(run),
                "groups": group_numbers(run.replicas),
                "send_cost": model and model.send * PICOSECONDS,
                "receive_cost": model and model.receive * PICOSECONDS,
                "byte_cost": model and model.byte,
                "answered_by": model and model.answers,
            }
        )
    return f.broadcast(traces.spark.createDataFrame(pa.Table.from_pylist(rows, schema=FACTS)))


def _within(time: Column) -> Column:
    """Tell whether a time lies in the measured period."""
    return (time >= f.col("begin")) & (time < f.col("end"))


def _spans(traces: TraceSet, kinds: tuple[str, ...]) -> Mapping[int, Span]:
    """Return the span of the events of these kinds in each run that has any."""
    rows = (
        union(traces.events(kind, "time") for kind in kinds)
        .groupBy("number")
        .agg(f.min("time").alias("first"), f.max("time").alias("last"))
        .collect()
    )
    return {row.number: (row.first, row.last) for row in rows}


def _message_latencies(traces: TraceSet, facts: DataFrame) -> DataFrame:
    """Return three rows a message: `kind` FIRST, GROUP and LAST delivery, the `duration` since the
    multicast in nanoseconds, null unless it is to be measured, and on the last row the
    MESSAGE_SUMS.

    A message is answered when every destination that never fails has delivered it. Without that,
    there is no last delivery to speak of; and none in the slowest group, unless each group of which
    a destination never fails has delivered it.
    """
    since = f.col("multicast")
    measured = _within(since)
    answered = f.col("answered")
    named = f.concat_ws(".", "origin", "seq")
    repeated = f.format_string(multicast_twice("%s", "%s"), f.col("run"), named)
    counts: dict[str, Column] = {
        "messages": f.when(f.col("is_repeated"), f.raise_error(repeated)).otherwise(1),
        "deliveries": f.col("deliveries"),
        "answered": answered,
        "answered_in_period": answered & _within(f.col("last")),
        "foreign": f.col("foreign"),
        "slow": f.col("slow"),
        **{name: f.coalesce(name, f.lit(0)) for name in ("steps", "steps_group", "steps_first")},
    }
    nothing = [f.lit(0).cast("bigint").alias(name) for name in MESSAGE_SUMS]
    first = f.struct(
        f.lit(FIRST).alias("kind"),
        f.when(measured, f.col("first") - since).alias("duration"),
        *nothing,
    )
    group = f.struct(
        f.lit(GROUP).alias("kind"),
        f.when(measured & f.col("reached"), f.col("slowest") - since).alias("duration"),
        *nothing,
    )
    last = f.struct(
        f.lit(LAST).alias("kind"),
        f.when(measured & answered, f.col("last") - since).alias("duration"),
        *(counts[name].cast("bigint").alias(name) for name in MESSAGE_SUMS),
    )
    failing = f.broadcast(_failing(traces).withColumn("failing", f.lit(True)))
    messages = _messages(_handled(traces), failing, facts)
    return messages.join(facts, "number").select("number", f.inline(f.array(first, group, last)))


def _messages(handled: DataFrame, failing: DataFrame, facts: DataFrame) -> DataFrame:
    """Return one row for each message that was multicast, from one for each group it concerned."""
    is_destination = f.col("multicast").isNotNull()
    delivered = f.col("delivered").isNotNull()
    owed = is_destination & ~delivered & f.col("failing").isNull()
    outsider = f.col("took_part") & ~is_destination & (f.col("process") != f.col("origin"))
    by_group = (
        handled.join(failing, ["number", "process"], "left")
        .join(facts.select("number", "groups"), "number")
        .groupBy(*MESSAGE, _group(f.col("process")).alias("group"))
        .agg(
            f.min("multicast").alias("multicast"),
            f.min("cast").alias("cast"),
            f.max("other_cast").alias("other_cast"),
            f.min("delivered").alias("first"),
            f.max("delivered").alias("last"),
            f.count("delivered").alias("deliveries"),
            f.max("depth").alias("depth"),
            f.min("least_depth").alias("least_depth"),
            f.bool_or(owed).alias("owed"),
            f.bool_or(is_destination & f.col("failing").isNull()).alias("expected"),
            f.bool_or(is_destination & (f.size("groups") > 0)).alias("asked"),
            f.bool_or(outsider).alias("foreign"),
            f.bool_or("slow").alias("slow"),
        )
    )
    is_delivered = f.bool_or(f.col("first").isNotNull())
    unreached = f.bool_or(f.col("expected") & f.col("first").isNull())
    silent = f.bool_or(f.col("asked") & f.col("first").isNull())
    return (
        by_group.groupBy(*MESSAGE)
        .agg(
            f.min("multicast").alias("multicast"),
            (f.min("cast") != f.max("other_cast")).alias("is_repeated"),
            f.min("first").alias("first"),
            f.max("first").alias("slowest"),
            f.max("last").alias("last"),
            f.sum("deliveries").alias("deliveries"),
            f.max("depth").alias("steps"),
            f.max("least_depth").alias("steps_group"),
            f.min("least_depth").alias("steps_first"),
            (is_delivered & ~f.bool_or("owed") & ~silent).alias("answered"),
            (is_delivered & ~unreached).alias("reached"),
            f.bool_or("foreign").alias("foreign"),
            f.bool_or("slow").alias("slow"),
        )
        .where(f.col("multicast").isNotNull())
    )


def _handled(traces: TraceSet) -> DataFrame:
    """Return one row for each message and process that is a destination of it or handled it."""
    multicasts = traces.events(
        schema.MULTICAST, "origin", "seq", "process", "step", "time", "destinations"
    ).withColumn("cast", f.xxhash64("process", "step"))
    deliveries = _deliveries(traces, "origin", "seq", "time", "depth")
    sends = traces.events(schema.SEND, "origin", "seq", "process", "detail")
    receives = traces.events(schema.RECEIVE, "origin", "seq", "process")
    slow = f.coalesce(f.col("detail") == SLOW_DETAIL, f.lit(False))
    elsewhere = f.col("process") != f.col("origin")
    parts = (
        multicasts.select(
            *MESSAGE,
            f.explode_outer("destinations").alias("process"),
            f.col("time").alias("multicast"),
            "cast",
        ),
        deliveries.select(
            *MESSAGE,
            "process",
            f.col("time").alias("delivered"),
            "depth",
            # What is not told counts as 0, as it does where nothing is delivered.
            f.coalesce("depth", f.lit(0)).alias("least_depth"),
        ),
        sends.where(elsewhere | slow).select(
            *MESSAGE, "process", slow.alias("slow"), f.lit(True).alias("took_part")
        ),
        receives.where(elsewhere).select(*MESSAGE, "process", f.lit(True).alias("took_part")),
    )
    together = reduce(lambda one, more: one.unionByName(more, allowMissingColumns=True), parts)
    return together.groupBy(*MESSAGE, "process").agg(
        f.min("multicast").alias("multicast"),
        f.min("cast").alias("cast"),
        f.max("cast").alias("other_cast"),
        f.min("delivered").alias("delivered"),
        f.max("depth").alias("depth"),
        f.min("least_depth").alias("least_depth"),
        f.coalesce(f.bool_or("slow"), f.lit(False)).alias("slow"),
        f.coalesce(f.bool_or("took_part"), f.lit(False)).alias("took_part"),
    )


def _delivery_latencies(traces: TraceSet, facts: DataFrame) -> DataFrame:
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
            _within(f.col("time")).alias("is_measured"),
            (lowest != highest).alias("is_global"),
        )
    )
    deliveries = _deliveries(traces, "origin", "seq", "time")
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


def _packet_sums(traces: TraceSet, facts: DataFrame) -> DataFrame:
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
    queued = f.when(_within(f.col("time")), f.col("queued"))
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
        _deliveries(traces, "origin")
        .join(facts, "number")
        .where(from_client & (f.col("answered_by") == BY_ALL))
        .select(*AT)
    )
    last = f.array_max("destinations")
    together = f.filter("destinations", lambda process: _group(process) == _group(last))
    others = (
        traces.events(schema.MULTICAST, "origin", "destinations")
        .join(facts, "number")
        .where(from_client & (f.col("answered_by") != BY_ALL))
        .withColumn(
            "answering", f.when(f.col("answered_by") == BY_LAST, f.array(last)).otherwise(together)
        )
        .select("number", f.explode("answering").alias("process"))
    )
    return all_answer.union(others).groupBy(*AT).agg(f.count("*").alias("answers"))


def _group(process: Column) -> Column:
    """The number of the group of replicas that a process is in; its own, if it is in none."""
    return f.coalesce(f.get("groups", process), process)
