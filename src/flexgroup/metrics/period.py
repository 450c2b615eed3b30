"""The measured period of a run: from when to when throughput and latencies count.

The measured period ends when the clients stop, and the first fifth before that is warm-up. Where
the options of a run do not tell the `duration` for which its clients multicast, from time 0 on, the
first and the last multicast tell. A run with a duration and without clients, whose members
multicast as planned, is measured whole: from the first multicast to the last delivery.
"""

from __future__ import annotations

import json
import re
from math import ceil

from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.trace import schema
from flexgroup.trace.run import Run

SECOND = 1_000_000_000
WARM_UP = 5
"""One part in so many of the time in which clients multicast is warm-up."""

Span = tuple[int, int]
"""The times of the first and of the last of some events."""
Period = tuple[int, int, float]
"""The first nanosecond, the first that is too late, and the exact length in nanoseconds.

The bounds are integers because doubles that count nanoseconds since 1970 are 256 apart.
"""
NO_PERIOD: Period = (0, 0, 0.0)


def kinds_of_span(run: Run) -> tuple[str, ...]:
    """Name the kinds of events whose span must be known to tell the measured period; there are
    none if the description of the run tells it."""
    if _is_planned(run):
        return (schema.MULTICAST, schema.DELIVER)
    return (schema.MULTICAST,) if _described_period(run) is None else ()


def measured_period(run: Run, span: Span | None) -> Period:
    """Return the measured period of a run, given the span of the events of `kinds_of_span`, or None
    if there are none of them."""
    if span is None:
        return _described_period(run) or NO_PERIOD
    first, end = span[0], span[1] + 1
    whole = end - first
    if _is_planned(run):
        return first, end, float(whole)
    return first - (-whole // WARM_UP), end, whole - whole / WARM_UP


def group_size(run: Run) -> int:
    """Return how many processes form a group, in whose terms messages are local or global."""
    groups = re.match(r"partitioned:(\d+)x", run.workload or "")
    replicas = run.replicas
    size = len(replicas[0]) if replicas else 1
    if replicas != replicas_of_sizes([size] * len(replicas)):
        size = 1
    return size * int(groups[1]) if groups else size


def _is_planned(run: Run) -> bool:
    return run.clients == 0 and _described_period(run) is not None


def _described_period(run: Run) -> Period | None:
    """Return the period that a run's options tell, if they tell for how long clients multicast."""
    try:
        duration = float(json.loads(run.options)["duration"])
        begin, end = duration / WARM_UP * SECOND, duration * SECOND
        return ceil(begin), ceil(end), end - begin
    except (ValueError, OverflowError, KeyError, TypeError):
        return None
