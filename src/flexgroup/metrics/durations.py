"""Means and percentiles of durations, from histograms that do not grow with the trace.

A histogram has a row for each class of durations that occurs; a class is a thousandth wide. Sums
and largest values are kept exactly, so means and maxima are exact, and a percentile is a duration
that did occur, at most a thousandth above the exact one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexgroup.metrics.period import SECOND
from flexgroup.trace.history import Ints

CLASSES_PER_E_FOLD = 1024
PERCENTILES = (50, 95, 99)
STATISTICS = ("mean", "trimmed", *(f"p{percent}" for percent in PERCENTILES), "max")

TRIMMED = 20
"""A trimmed mean drops one part in so many at either end: 5%."""


@dataclass(frozen=True)
class Histogram:
    """How many durations fall into each class that occurs, shortest first; their sum, and the
    largest of them. Durations are in nanoseconds."""

    count: Ints
    total: Ints
    largest: Ints


def histogram(durations: Ints) -> Histogram:
    """Return the histogram of these durations."""
    ordered = np.sort(durations)
    classes = np.floor(np.log(np.maximum(ordered, 1)) * CLASSES_PER_E_FOLD)
    first = np.flatnonzero(np.diff(classes, prepend=-1.0))
    if len(first) == 0:
        return Histogram(first, first, first)
    count = np.diff(first, append=len(ordered))
    return Histogram(count, np.add.reduceat(ordered, first), ordered[first + count - 1])


def statistics(durations: Histogram) -> dict[str, float | None]:
    """Return the STATISTICS in seconds; each is None if there are no durations."""
    count, total, largest = durations.count, durations.total, durations.largest
    everything = int(count.sum())
    if not everything:
        return dict.fromkeys(STATISTICS)
    up_to = np.cumsum(count)
    dropped = everything // TRIMMED
    kept = np.maximum(
        0, np.minimum(up_to, everything - dropped) - np.maximum(up_to - count, dropped)
    )
    # By nearest rank: the smallest that so many of 100 are not above.
    ranks = [np.searchsorted(up_to * 100, everything * percent) for percent in PERCENTILES]
    values = (
        total.sum() / everything,
        (total / count * kept).sum() / kept.sum(),
        *largest[ranks],
        largest.max(),
    )
    return {name: float(value) / SECOND for name, value in zip(STATISTICS, values, strict=True)}
