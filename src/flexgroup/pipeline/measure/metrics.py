"""The metrics of docs/measures.md in terms of the sums over a run; one row a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from flexgroup.pipeline.measure.durations import STATISTICS
from flexgroup.pipeline.measure.facts import SECOND
from flexgroup.pipeline.measure.sums import LATENCIES
from flexgroup.trace import schema
from flexgroup.trace.run import Run

Number = float | int | None

POINT = (
    "world",
    "stack",
    "options",
    "processes",
    "clients",
    "groups",
    "workload",
    "network",
    "faults",
    "software",
)
"""What repetitions of a run have in common."""

COUNTS = ("messages", "deliveries", "unanswered", "crashed")

METRICS = (
    *COUNTS,
    "throughput",
    *(f"{name}_{statistic}" for name in LATENCIES for statistic in STATISTICS),
    "local_alone",
    "local_convoyed",
    "convoy_delay",
    "convoyed",
    "steps",
    "volume",
    "volume_bytes",
    "header_bytes",
    "genuine",
    "fast",
    "queue_mean",
    "queue_max",
    "queued",
    "busy",
    "busiest",
)

OF_RECORDED_PACKETS = ("volume", "volume_bytes", "header_bytes", "genuine", "fast")
"""Unknown in a run that has messages and no packets: they were not recorded."""

MEASURES = pa.schema(
    [
        *(
            schema.RUN_COLUMNS.field(name).with_nullable(True)
            for name in ("run", *POINT, "seed", "outcome")
        ),
        *((name, pa.int64() if name in COUNTS else pa.float64()) for name in METRICS),
    ]
)


def measures(described: Iterable[Run], sums: Mapping[str, Mapping[str, Any]]) -> pa.Table:
    """The columns that describe each run, and its METRICS."""
    rows = [{**asdict(run), **metrics(run.processes, sums[run.run])} for run in described]
    return pa.Table.from_pylist(rows, MEASURES)


def metrics(processes: int, summed: Mapping[str, Any]) -> dict[str, Number]:
    """The METRICS of one run."""
    messages, packets = summed["messages"] or 0, summed["packets"] or 0
    alone, convoyed = summed["alone_count"] or 0, summed["convoyed_count"] or 0
    rate = _divided(summed["answered_in_period"], summed["length"])
    sizes = _added(summed["header_bytes"], summed["payload_bytes"])
    told = {
        "messages": messages,
        "deliveries": summed["deliveries"] or 0,
        "unanswered": messages - (summed["answered"] or 0),
        "crashed": summed["crashed"] or 0,
        "throughput": (rate or 0.0) * SECOND,
        **{f"{name}_{told}": summed[f"{name}_{told}"] for name in LATENCIES for told in STATISTICS},
        "local_alone": summed["local_alone"],
        "local_convoyed": summed["local_convoyed"],
        "convoy_delay": _added(summed["local_convoyed"], summed["local_alone"], -1),
        "convoyed": _divided(convoyed, alone + convoyed),
        "steps": _each(summed["steps"], messages),
        "volume": _each(packets, messages),
        "volume_bytes": _each(sizes, messages) if packets else 0.0,
        "header_bytes": _each(summed["header_bytes"], packets),
        "genuine": _added(1, _each(summed["foreign"], messages), -1),
        "fast": _added(1, _each(summed["slow"], messages), -1),
        "queue_mean": _divided(_divided(summed["queue_sum"], summed["received"]), SECOND),
        "queue_max": _divided(summed["queue_max"], SECOND),
        "queued": _divided(summed["queued"], summed["received"]),
        "busy": _divided(_divided(summed["spent"], processes), _latest(summed)),
        "busiest": _divided(summed["most_spent"], _latest(summed)),
    }
    if messages and not summed["rows"]:
        told |= dict.fromkeys(OF_RECORDED_PACKETS)
    return told


def _each(total: Number, count: int) -> Number:
    """The mean, and 0 of nothing."""
    return _divided(total, count) if count else 0.0


def _divided(one: Number, other: Number) -> float | None:
    """Unknown where one is, and by zero."""
    return None if one is None or not other else one / other


def _added(one: Number, other: Number, factor: int = 1) -> Number:
    return None if one is None or other is None else one + factor * other


def _latest(summed: Mapping[str, Any]) -> int:
    """When the last packet was received, in the picoseconds in which work is counted."""
    return 1000 * max(summed["latest"] or 0, 1)
