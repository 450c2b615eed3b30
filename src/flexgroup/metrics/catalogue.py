"""All metrics of a run: name, unit, meaning, and the formula over the named sums.

This table is the only definition of a metric. Measuring on Spark, the summary of a simulation,
experiments, reports and docs/measures.md take formulas, headings, units and digits from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from operator import itemgetter
from typing import Any

from flexgroup.metrics.durations import PERCENTILES, STATISTICS
from flexgroup.metrics.period import SECOND
from flexgroup.metrics.sums import LATENCIES
from flexgroup.trace.run import Run, planned_detection

Number = float | int | None
Sums = Mapping[str, Any]
"""The sums of one run (see `sums.SUMS`), its number of `processes`, and the planned `detection` of
crashes in seconds, or None."""


@dataclass(frozen=True)
class Unit:
    """The unit in which values are shown, and its factor from the one in which they are kept."""

    shown: str
    factor: float = 1.0


PLAIN = Unit("")
MESSAGES_A_SECOND = Unit("messages/s")
SECONDS = Unit("ms", 1000.0)
SHARE = Unit("%", 100.0)


@dataclass(frozen=True)
class Metric:
    """One metric: how it is computed, and how it is shown to people."""

    name: str
    meaning: str
    formula: Callable[[Sums], Number]
    unit: Unit = PLAIN
    title: str = ""
    """What a heading calls it, without the unit; its name, if nothing else is said."""
    short: str = ""
    """The heading where there is little room, with the unit."""
    digits: str = ".2f"
    """The format of the shown value."""
    is_count: bool = False
    needs_packets: bool = False
    """Whether it is unknown in a run with messages whose packets were not recorded."""

    @property
    def heading(self) -> str:
        """The title with the unit."""
        title = self.title or self.name.replace("_", " ")
        return f"{title} ({self.unit.shown})" if self.unit.shown else title

    def shown(self, value: object) -> float | None:
        """Return the value in the unit that is shown; None if there is none."""
        if not isinstance(value, int | float) or not isfinite(value):
            return None
        return value * self.unit.factor

    def text(self, value: float) -> str:
        """Return the value as it is shown, without the unit."""
        return format(value * self.unit.factor, self.digits)

    def phrase(self, value: float) -> str:
        """Return the value with the unit and the title, for a sentence: `99.5% genuine`."""
        return f"{self.text(value)}{self.unit.shown} {self.title or self.name}"


def _divided(one: Number, other: Number) -> float | None:
    """Divide; the result is unknown if one is, and by zero."""
    return None if one is None or not other else one / other


def _mean(total: Number, count: int) -> Number:
    """Divide by a count; the mean of nothing is 0."""
    return _divided(total, count) if count else 0.0


def _share_without(total: str) -> Callable[[Sums], Number]:
    """Return the share of messages that are not among those that were counted; 1 if there are
    none."""

    def formula(sums: Sums) -> Number:
        with_it = _mean(sums[total], sums["messages"] or 0)
        return None if with_it is None else 1 - with_it

    return formula


def _volume_bytes(sums: Sums) -> Number:
    headers, payloads = sums["header_bytes"], sums["payload_bytes"]
    if not sums["packets"]:
        return 0.0
    if headers is None or payloads is None:
        return None if sums["messages"] else 0.0
    return _mean(headers + payloads, sums["messages"] or 0)


def _throughput(sums: Sums) -> Number:
    return (_divided(sums["answered_in_period"], sums["length"]) or 0.0) * SECOND


def _convoy_delay(sums: Sums) -> Number:
    convoyed, alone = sums["local_convoyed"], sums["local_alone"]
    return None if convoyed is None or alone is None else convoyed - alone


def _local_latency(sums: Sums) -> Number:
    parts = [
        (sums[f"{kind}_count"] or 0, sums[f"local_{kind}"] or 0.0) for kind in ("alone", "convoyed")
    ]
    return _divided(sum(count * mean for count, mean in parts), sum(count for count, _ in parts))


def _convoyed(sums: Sums) -> Number:
    alone, convoyed = sums["alone_count"] or 0, sums["convoyed_count"] or 0
    return _divided(convoyed, alone + convoyed)


def _latest(sums: Sums) -> int:
    """Tell when the last packet was received, in the picoseconds in which work is counted."""
    return 1000 * max(sums["latest"] or 0, 1)


def _latency_metrics() -> list[Metric]:
    meanings = {
        "latency_last": "from the multicast to the last delivery; of answered messages multicast in"
        " the measured period",
        "latency_group": "from the multicast until some member of every destination group has"
        " delivered; of messages multicast in the measured period of which that is so, groups whose"
        " members all crash left out",
        "latency_first": "from the multicast to the first delivery; of messages multicast in the"
        " measured period that some process delivered",
        "latency_delivery": "from the multicast to each delivery, every destination counting for"
        " itself; of messages multicast in the measured period",
    }
    ends = {
        "latency_last": "",
        "latency_group": " to each group",
        "latency_first": " to first",
        "latency_delivery": " to each",
    }
    shorts = {"latency_group": "group ", "latency_first": "first "}
    titles = {"mean": "mean latency", "trimmed": "trimmed mean latency", "max": "longest latency"}
    titles |= {f"p{percent}": f"{percent}th percentile" for percent in PERCENTILES}
    return [
        Metric(
            f"{name}_{statistic}",
            meanings[name],
            itemgetter(f"{name}_{statistic}"),
            SECONDS,
            title=titles[statistic] + ends[name],
            short=shorts.get(name, "")
            + ("latency ms" if statistic == "mean" else f"{statistic} ms"),
            digits=".3f",
        )
        for name in LATENCIES
        for statistic in STATISTICS
    ]


_ALL = (
    Metric(
        "messages",
        "multicasts in the run",
        lambda sums: sums["messages"] or 0,
        is_count=True,
    ),
    Metric(
        "deliveries",
        "deliveries of these messages",
        lambda sums: sums["deliveries"] or 0,
        is_count=True,
    ),
    Metric(
        "unanswered",
        "messages that are not answered by the end of the trace",
        lambda sums: (sums["messages"] or 0) - (sums["answered"] or 0),
        title="unanswered messages",
        digits=".1f",
        is_count=True,
    ),
    Metric(
        "crashed",
        "processes that crash in the run",
        lambda sums: sums["crashed"] or 0,
        title="processes that crash",
        digits=".0f",
        is_count=True,
    ),
    Metric(
        "throughput",
        "answered messages whose last delivery lies in the measured period, divided by its length:"
        " messages a second",
        _throughput,
        MESSAGES_A_SECOND,
        short="messages/s",
        digits=",.0f",
    ),
    *_latency_metrics(),
    Metric(
        "local_latency",
        "mean latency of deliveries of local messages",
        _local_latency,
        SECONDS,
        title="latency of local messages",
        digits=".3f",
    ),
    Metric(
        "local_alone",
        "mean latency of deliveries of local messages that are not convoyed",
        lambda sums: sums["local_alone"],
        SECONDS,
        digits=".3f",
    ),
    Metric(
        "local_convoyed",
        "mean latency of those that are",
        lambda sums: sums["local_convoyed"],
        SECONDS,
        digits=".3f",
    ),
    Metric(
        "convoy_delay",
        "the difference: what global traffic adds",
        _convoy_delay,
        SECONDS,
        short="convoy ms",
        digits=".3f",
    ),
    Metric(
        "convoyed",
        "the share of deliveries of local messages that are convoyed",
        _convoyed,
        SHARE,
        digits=".1f",
    ),
    Metric(
        "gap_same",
        "the longest time in the measured period in which a process delivered nothing, of those"
        " that never fail and deliver something in it, in groups of replicas of which a member"
        " fails: crashes, or is faulty by design",
        lambda sums: _divided(sums["gap_same"], SECOND),
        SECONDS,
        title="longest gap in the group that is struck",
        digits=".2f",
    ),
    Metric(
        "gap_elsewhere",
        "the same of all other processes that never fail",
        lambda sums: _divided(sums["gap_elsewhere"], SECOND),
        SECONDS,
        title="longest gap elsewhere",
        digits=".2f",
    ),
    Metric(
        "detection",
        "how long after a crash the others are told of it, if that was planned",
        lambda sums: sums["detection"],
        SECONDS,
        title="detection after",
        digits=".0f",
    ),
    Metric(
        "steps",
        "the largest depth at which a destination delivered the message, 0 if none did; mean over"
        " messages",
        lambda sums: _mean(sums["steps"], sums["messages"] or 0),
        short="steps",
    ),
    Metric(
        "steps_group",
        "the same, of each destination group the smallest depth at which a member delivered the"
        " message: the largest of these, 0 if none did; mean over messages",
        lambda sums: _mean(sums["steps_group"], sums["messages"] or 0),
        title="steps to each group",
        short="group steps",
    ),
    Metric(
        "steps_first",
        "the smallest depth at which any process delivered the message, 0 if none did; mean over"
        " messages",
        lambda sums: _mean(sums["steps_first"], sums["messages"] or 0),
        title="steps to first",
        short="first steps",
    ),
    Metric(
        "volume",
        "packets about messages sent by processes, those of clients not counted, divided by"
        " `messages`",
        lambda sums: _mean(sums["packets"] or 0, sums["messages"] or 0),
        title="packets a message",
        short="packets",
        digits=",.2f",
        needs_packets=True,
    ),
    Metric(
        "volume_bytes",
        "bytes of these packets, headers and payloads, divided by `messages`",
        _volume_bytes,
        title="bytes a message",
        digits=",.0f",
        needs_packets=True,
    ),
    Metric(
        "header_bytes",
        "bytes of their headers, divided by the number of these packets",
        lambda sums: _mean(sums["header_bytes"], sums["packets"] or 0),
        title="header bytes a packet",
        short="header B",
        digits=".1f",
        needs_packets=True,
    ),
    Metric(
        "genuine",
        "share of messages about which no process but the origin and the destinations sent or"
        " received a packet",
        _share_without("foreign"),
        SHARE,
        short="genuine %",
        digits=".1f",
        needs_packets=True,
    ),
    Metric(
        "fast",
        "share of messages that nobody sent in slow mode",
        _share_without("slow"),
        SHARE,
        short="fast %",
        digits=".1f",
        needs_packets=True,
    ),
    Metric(
        "queue_mean",
        "mean time that packets stood in the queue of a process, of packets handled in the measured"
        " period",
        lambda sums: _divided(_divided(sums["queue_sum"], sums["received"]), SECOND),
        SECONDS,
        short="queue ms",
        digits=".3f",
    ),
    Metric(
        "queue_max",
        "the longest",
        lambda sums: _divided(sums["queue_max"], SECOND),
        SECONDS,
        digits=".3f",
    ),
    Metric(
        "queued",
        "the share of these packets that waited at all",
        lambda sums: _divided(sums["queued"], sums["received"]),
        SHARE,
        digits=".1f",
    ),
    Metric(
        "busy",
        "the share of the time that processes work, on average over them",
        lambda sums: _divided(_divided(sums["spent"], sums["processes"]), _latest(sums)),
        SHARE,
        short="busy %",
        digits=".0f",
    ),
    Metric(
        "busiest",
        "the same of the process that works most",
        lambda sums: _divided(sums["most_spent"], _latest(sums)),
        SHARE,
        digits=".0f",
    ),
)

HEADLINES = ("throughput", "latency_last_mean")
"""What is meant where somebody asks for the throughput and the latency of a run and says no more:
in all commands, on pages and in notebooks."""

WHICH = (
    "throughput and latency without warm-up, the first fifth of the time in which clients"
    " multicast; latency is the mean until the last delivery"
)
"""What stands beside the HEADLINES."""

METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}

TOLD_APART = frozenset(("latency_group_mean", "latency_first_mean", "steps_group", "steps_first"))
"""Metrics that tables for people show only where processes are divided into groups of replicas: who
waits for whom is then a matter of its own."""

CONDITIONS = ("clients", "processes", "crashed", "detection")
"""What is chosen and not measured; figures may show metrics against one of these."""

FIGURE_NAMES = {"latency": "latency_last_mean"}
"""What figures of experiments call a metric, where that is not its name."""

PACKETS_OF_TYPE = "packets_"
"""The prefix, before the name of a type of packets, of a metric that experiments have besides the
others: how many packets of the type processes sent in a run."""

HALF_WIDTH = "_ci95"
"""The suffix of the column with half the width of a metric's 95% confidence interval."""


def find_metric(name: str) -> Metric:
    """Return the metric of this name; a column that is none is shown as it is."""
    column = FIGURE_NAMES.get(name, name)
    if column in METRICS:
        return METRICS[column]
    title = name.replace("_", " ")
    if column.startswith(PACKETS_OF_TYPE):
        title = f"{column.removeprefix(PACKETS_OF_TYPE)} packets"
    return Metric(column, title, _unknown, title=title, digits=",.0f")


def _unknown(sums: Sums) -> None:
    """Stand for a formula where the sums do not tell."""


def evaluate(run: Run, sums: Mapping[str, Any]) -> dict[str, Number]:
    """Return all metrics of a run."""
    with_plan = {
        **sums,
        "processes": run.processes,
        "detection": planned_detection(run.faults),
    }
    is_recorded = not sums["messages"] or bool(sums["rows"])
    return {
        name: metric.formula(with_plan) if is_recorded or not metric.needs_packets else None
        for name, metric in METRICS.items()
    }
