"""The messages that explain why a delivery came too early for causal order.

Found are those that the plain-Python property would name: a shortest chain of causes from a
message that the destination had yet to deliver, and of several the one that it comes upon first.
It goes back from the early message m, breadth first; here, the way is taken in the other direction,
and all that is known at a time is a step for each process.

Call good the messages that the destination had yet to deliver, and at each round those that a
process multicast after it had multicast or delivered one that was good in the round before. The
round in which the process that multicast m has had a good one before m is the length of a shortest
chain. Going back from m, a search that is breadth first comes upon a good message of the next round
at the process where it stands: the first that this process multicast, or else the first that it
delivered. For what it had before a later event, it had at the first good one, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from flexgroup.pipeline.reading.trace_set import TraceSet
from flexgroup.pipeline.spark.frames import rows_of
from flexgroup.pipeline.verify.event_rows import packed_message
from flexgroup.pipeline.verify.timeline import LATER
from flexgroup.trace.schema import DELIVER, MULTICAST

EARLY = pa.schema(
    {"number": pa.int32(), "early": pa.int64(), "at": pa.int32(), "at_step": pa.int64()}
)
FAULTY = pa.schema({"number": pa.int32(), "process": pa.int32()})
FIRSTS = pa.schema({"number": pa.int32(), "sender": pa.int32(), "first": pa.int64()})


class Early(NamedTuple):
    """A delivery that came too early: which run, which message, by which process, at which step."""

    number: int
    message: int
    process: int
    step: int


class _Event(NamedTuple):
    """The step at which a process multicast or delivered a message, and who multicast it when."""

    step: int
    message: int
    sender: int
    sent: int


_NEVER = _Event(LATER, 0, 0, 0)


@dataclass
class _Had:
    """The first good messages that a process multicast and delivered."""

    multicast: _Event = _NEVER
    delivered: _Event = _NEVER

    @property
    def first(self) -> int:
        return min(self.multicast.step, self.delivered.step)

    def before(self, step: int) -> _Event:
        """Return what a search comes upon that goes back from this step."""
        return self.multicast if self.multicast.step < step else self.delivered


@dataclass
class _Search:
    """The way to the early message of a run."""

    end: _Event
    rounds: list[dict[int, _Had]] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return self.rounds[-1].get(self.end.sender, _Had()).first < self.end.sent

    def chain(self) -> list[int]:
        """Return the messages on the way, from the early one backwards."""
        chain = [self.end]
        for had in reversed(self.rounds):
            chain.append(had[chain[-1].sender].before(chain[-1].sent))
        return [event.message for event in chain]


def chains_of_causes(
    traces: TraceSet, early: Sequence[Early], faulty: Mapping[int, tuple[int, ...]]
) -> dict[int, list[int]]:
    """Return, for each run in which a delivery came too early, the messages that explain it."""
    if not early:
        return {}
    wanted = f.broadcast(rows_of(traces.spark, early, EARLY))
    sent, heard = _events(traces, wanted, faulty)
    ends = sent.join(wanted, "number").where(f.col("message") == f.col("early"))
    searches = {
        row.number: _Search(_Event(row.sent, row.message, row.sender, row.sent))
        for row in ends.collect()
    }
    good = _yet_to_deliver(sent, heard, wanted)
    open_ = searches
    while open_:
        had = _first_good(good, heard)
        for number, search in open_.items():
            search.rounds.append(had[number])
        open_ = {number: search for number, search in open_.items() if not search.is_over}
        good = _multicast_after(traces, sent, open_)
    return {number: search.chain() for number, search in searches.items()}


def _events(
    traces: TraceSet, wanted: DataFrame, faulty: Mapping[int, tuple[int, ...]]
) -> tuple[DataFrame, DataFrame]:
    """Return the multicasts and the deliveries of these runs; `binds` tells whether what the
    process did before says anything about a multicast."""
    numbers = wanted.select("number")
    excluded = [(number, process) for number, some in faulty.items() for process in some]
    unreliable = f.broadcast(rows_of(traces.spark, excluded, FAULTY))
    sent = traces.events(MULTICAST, "process", "step", "origin", "seq", "destinations")
    heard = traces.events(DELIVER, "process", "step", "origin", "seq")
    marked = unreliable.withColumn("faulty", f.lit(True))
    return (
        sent.join(numbers, "number")
        .join(marked, ["number", "process"], "left")
        .select(
            "number",
            packed_message().alias("message"),
            f.col("process").alias("sender"),
            f.col("step").alias("sent"),
            "destinations",
            f.col("faulty").isNull().alias("binds"),
        ),
        heard.join(numbers, "number")
        .join(unreliable, ["number", "process"], "left_anti")
        .select("number", packed_message().alias("message"), "process", "step"),
    )


def _yet_to_deliver(sent: DataFrame, heard: DataFrame, wanted: DataFrame) -> DataFrame:
    """Return the messages that processes had not delivered when they delivered one too early."""
    had = heard.join(wanted, "number").where("process = at and step <= at_step")
    asked = sent.join(wanted, "number").where(f.array_contains("destinations", f.col("at")))
    return asked.join(had.select("number", "message"), ["number", "message"], "left_anti").select(
        *sent.columns
    )


def _multicast_after(
    traces: TraceSet, sent: DataFrame, searches: Mapping[int, _Search]
) -> DataFrame:
    """Return what processes multicast after they had had something good."""
    firsts = [
        (number, process, had.first)
        for number, search in searches.items()
        for process, had in search.rounds[-1].items()
    ]
    known = f.broadcast(rows_of(traces.spark, firsts, FIRSTS))
    return sent.join(known, ["number", "sender"]).where("sent > first").select(*sent.columns)


def _first_good(good: DataFrame, heard: DataFrame) -> dict[int, dict[int, _Had]]:
    """Return what good messages each process of each run had first."""
    about = ("message", "sender", "sent")
    multicast = good.where("binds").select(
        "number",
        f.col("sender").alias("process"),
        f.lit(True).alias("own"),
        f.col("sent").alias("step"),
        *about,
    )
    delivered = heard.join(good.select("number", *about), ["number", "message"]).select(
        "number", "process", f.lit(False).alias("own"), "step", *about
    )
    firsts = (
        multicast.unionAll(delivered)
        .groupBy("number", "process", "own")
        .agg(f.min(f.struct("step", *about)).alias("first"))
    )
    found: dict[int, dict[int, _Had]] = {}
    for row in firsts.collect():
        had = found.setdefault(row.number, {}).setdefault(row.process, _Had())
        event = _Event(*row.first)
        if row.own:
            had.multicast = event
        else:
            had.delivered = event
    return found
