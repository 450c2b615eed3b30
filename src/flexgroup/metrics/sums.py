"""The named sums over the events of a run, from which its metrics are computed.

They are all that is counted, whichever way: with numpy or with Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from flexgroup.metrics.durations import STATISTICS, Histogram, statistics

FIRST, GROUP, LAST, ANY, ALONE, CONVOYED = KINDS = (
    "first", "group", "last", "any", "alone", "convoyed",
)  # fmt: skip
"""Kinds of durations since a multicast: until the first delivery of the message, until the first in
the slowest of the destination groups, until the last, and until any; and until any delivery of a
local message, alone and convoyed (see `counting`)."""

LATENCIES = {
    "latency_last": LAST,
    "latency_group": GROUP,
    "latency_first": FIRST,
    "latency_delivery": ANY,
}

MESSAGE_SUMS = (
    "messages", "deliveries", "answered", "answered_in_period", "foreign", "slow", "steps",
    "steps_group", "steps_first",
)  # fmt: skip
"""Foreign messages are those about which a process heard that is neither their origin nor a
destination of theirs; slow ones are those that somebody sent in slow mode."""

PACKET_SUMS = (
    "packets", "header_bytes", "payload_bytes", "received", "queue_sum", "queued", "queue_max",
)  # fmt: skip
"""These sums are about what processes sent and received; clients do not count."""

WORK_SUMS = ("rows", "spent", "most_spent", "latest")
"""Send and receive events; picoseconds of work of all processes, and of the one with most of it;
and the time of the last receive."""

GAP_SUMS = ("gap_same", "gap_elsewhere")
"""The longest time, in nanoseconds of the measured period, in which a process delivered nothing, of
those that never fail and deliver something in it: where a member of their group of replicas fails,
and elsewhere. Who crashes fails, and who is faulty by design."""

DURATION_SUMS = pa.schema(
    [
        *((name, pa.int64()) for name in MESSAGE_SUMS),
        *((f"{name}_{statistic}", pa.float64()) for name in LATENCIES for statistic in STATISTICS),
        ("local_alone", pa.float64()),
        ("local_convoyed", pa.float64()),
        ("alone_count", pa.int64()),
        ("convoyed_count", pa.int64()),
    ]
)

SUMS = pa.schema(
    [
        ("run", pa.string()),
        ("length", pa.float64()),
        *DURATION_SUMS,
        *((name, pa.int64()) for name in (*PACKET_SUMS, *WORK_SUMS, *GAP_SUMS, "crashed")),
    ]
)
"""A row for each run; a sum is null where there is nothing to add up."""

PACKETS = pa.schema(
    [
        ("run", pa.string()),
        ("sender", pa.string()),
        ("packet", pa.string()),
        ("packets", pa.int64()),
        ("header_bytes", pa.int64()),
        ("payload_bytes", pa.int64()),
    ]
)
"""A row for each run, type of packets, and kind of sender: PROCESS or CLIENT."""

PROCESS, CLIENT = "process", "client"


def duration_sums(histograms: Mapping[str, Histogram]) -> dict[str, Any]:
    """Return what the durations of all KINDS of a run come to."""
    found = {kind: statistics(histograms[kind]) for kind in KINDS}
    return {
        **{f"{name}_{s}": found[kind][s] for name, kind in LATENCIES.items() for s in STATISTICS},
        "local_alone": found[ALONE]["mean"],
        "local_convoyed": found[CONVOYED]["mean"],
        "alone_count": int(histograms[ALONE].count.sum()),
        "convoyed_count": int(histograms[CONVOYED].count.sum()),
    }
