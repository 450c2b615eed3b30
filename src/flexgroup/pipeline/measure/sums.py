"""What is counted in a run, whichever way: the sums from which its metrics are computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from flexgroup.pipeline.measure.durations import STATISTICS, Histogram, statistics

FIRST, LAST, ANY, ALONE, CONVOYED = KINDS = ("first", "last", "any", "alone", "convoyed")
"""Durations since the multicast: until the first, the last, and any delivery; and until any of a
local message, when no global one was in its way and when one was."""

LATENCIES = {"latency_last": LAST, "latency_first": FIRST, "latency_delivery": ANY}

OF_MESSAGES = (
    "messages", "deliveries", "answered", "answered_in_period", "foreign", "slow", "steps",
)  # fmt: skip

OF_PACKETS = (
    "packets", "header_bytes", "payload_bytes", "received", "queue_sum", "queued", "queue_max",
)  # fmt: skip
"""Of what the processes sent and received, clients not counted."""

OF_WORK = ("rows", "spent", "most_spent", "latest")
"""Send and receive events; picoseconds of work of all processes, and of that with most of it; and
when the last packet was received."""

DURATIONS = pa.schema(
    [
        *((name, pa.int64()) for name in OF_MESSAGES),
        *((f"{name}_{told}", pa.float64()) for name in LATENCIES for told in STATISTICS),
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
        *DURATIONS,
        *((name, pa.int64()) for name in (*OF_PACKETS, *OF_WORK, "crashed")),
    ]
)
"""A row for each run; null where there is nothing to sum."""

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
"""A row for each run, type of packets, and sender: PROCESS or CLIENT."""

PROCESS, CLIENT = "process", "client"


def of_durations(histograms: Mapping[str, Histogram]) -> dict[str, Any]:
    """What a run's durations of all KINDS tell."""
    told = {kind: statistics(histograms[kind]) for kind in KINDS}
    return {
        **{f"{name}_{s}": told[kind][s] for name, kind in LATENCIES.items() for s in STATISTICS},
        "local_alone": told[ALONE]["mean"],
        "local_convoyed": told[CONVOYED]["mean"],
        "alone_count": int(histograms[ALONE].count.sum()),
        "convoyed_count": int(histograms[CONVOYED].count.sum()),
    }
