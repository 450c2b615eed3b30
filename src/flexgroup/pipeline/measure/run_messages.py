"""What became of each message of a run that one task can hold.

The same is said in column expressions in `messages.py` and `deliveries.py`, for runs of any length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flexgroup.core.message import ORIGIN_MASK
from flexgroup.pipeline.measure.facts import Period
from flexgroup.pipeline.measure.sums import ALONE, ANY, CONVOYED, FIRST, LAST
from flexgroup.trace.history import Deliveries, History, Ints, Multicasts

Flags = NDArray[np.bool_]

NEVER, LATEST = np.iinfo(np.int64).max, np.iinfo(np.int64).min

PROCESSES = 1 << 31
"""Message number m at process p is the integer m * PROCESSES + p."""


@dataclass(frozen=True)
class Casts:
    """The messages that were multicast in a run, by identity: when, and to whom."""

    identity: Ints
    time: Ints
    lowest: Ints
    highest: Ints
    """The smallest and the largest number of a destination."""
    destinations: Ints
    """Messages at processes, sorted."""
    without: Flags
    """Whether no destination is named."""

    @classmethod
    def of(cls, rows: Multicasts) -> Casts:
        identity, message = np.unique(rows.message, return_inverse=True)
        count = len(identity)
        targeted = np.repeat(message, np.diff(rows.offsets))
        return cls(
            identity,
            _least(message, rows.time, count),
            _least(targeted, rows.targets, count),
            _most(targeted, rows.targets, count),
            np.unique(targeted * PROCESSES + rows.targets),
            np.bincount(targeted, minlength=count) == 0,
        )

    def among(self, messages: Ints) -> tuple[Flags, Ints]:
        """Which of these messages were multicast, and the numbers of those that were."""
        if len(self.identity) == 0:
            return np.zeros(len(messages), dtype=bool), messages[:0]
        number = np.searchsorted(self.identity, messages)
        number[number == len(self.identity)] = 0
        known = self.identity[number] == messages
        return known, number[known]

    def concerns(self, messages: Ints) -> Flags:
        """Which of the messages of this run are among these."""
        return np.isin(self.identity, messages)

    def handled_by_outsiders(self, messages: Ints, processes: Ints) -> Ints:
        """The numbers of the messages that one of these processes, which took part in them, is
        neither the origin nor a destination of."""
        known, number = self.among(messages)
        process = processes[known]
        elsewhere = process != (self.identity[number] & ORIGIN_MASK)
        pairs = np.unique(number[elsewhere] * PROCESSES + process[elsewhere])
        return pairs[~np.isin(pairs, self.destinations)] // PROCESSES

    def are_global(self, group_size: int) -> Flags:
        group, other = self.lowest // group_size, self.highest // group_size
        flags: Flags = ~self.without & (group != other)
        return flags


def message_counts(
    casts: Casts, history: History, period: Period
) -> tuple[dict[str, int], dict[str, Ints]]:
    """How many messages there are, and were answered; and durations until deliveries.

    A message is answered when every destination that never crashes has delivered it. Without
    that, there is no last delivery to speak of.
    """
    count, deliveries = len(casts.identity), history.deliveries
    known, number = casts.among(deliveries.message)
    pair = number * PROCESSES + deliveries.process[known]
    pairs, row = np.unique(pair, return_inverse=True)
    delivered = _least(row, deliveries.time[known], len(pairs))
    message = pairs // PROCESSES
    first, last = _least(message, delivered, count), _most(message, delivered, count)
    missing = casts.destinations[~np.isin(casts.destinations, pairs)]
    owed = missing[~np.isin(missing % PROCESSES, history.crashes.process)] // PROCESSES
    is_delivered = np.bincount(message, minlength=count) > 0
    is_answered = is_delivered & ~casts.without
    is_answered[owed] = False
    is_measured = _within(casts.time, period)
    counts = {
        "messages": count,
        "deliveries": len(pairs),
        "answered": int(is_answered.sum()),
        "answered_in_period": int(_within(last[is_answered], period).sum()),
        "steps": int(np.maximum(_most(number, deliveries.depth[known], count), 0).sum()),
    }
    is_first, is_last = is_measured & is_delivered, is_measured & is_answered
    durations = {
        FIRST: (first - casts.time)[is_first],
        LAST: (last - casts.time)[is_last],
    }
    return counts, durations


def delivery_durations(
    casts: Casts, deliveries: Deliveries, group_size: int, period: Period
) -> dict[str, Ints]:
    """Durations until each delivery: of all messages, and of local ones alone and convoyed."""
    known, number = casts.among(deliveries.message)
    process, time, since = deliveries.process[known], deliveries.time[known], casts.time[number]
    is_global = casts.are_global(group_size)[number]
    # Times as ranks, so that a process and a time are one integer that sorts as they do.
    times, rank = np.unique(np.concatenate((since, time)), return_inverse=True)
    at_multicast, at_delivery = np.split(np.tile(process * len(times), 2) + rank, 2)
    under_way = np.searchsorted(np.sort(at_multicast[is_global]), at_multicast, "right")
    # What comes before the first message at a process is the same here and there.
    under_way -= np.searchsorted(np.sort(at_delivery[is_global]), at_multicast, "right")
    is_measured = _within(since, period)
    is_local, waits = is_measured & ~is_global, under_way > 0
    durations = time - since
    return {
        ANY: durations[is_measured],
        ALONE: durations[is_local & ~waits],
        CONVOYED: durations[is_local & waits],
    }


def _within(time: Ints, period: Period) -> Flags:
    return (time >= period[0]) & (time < period[1])


def _least(groups: Ints, values: Ints, count: int) -> Ints:
    """The least value of each group, by its number."""
    found = np.full(count, NEVER)
    np.minimum.at(found, groups, values)
    return found


def _most(groups: Ints, values: Ints, count: int) -> Ints:
    found = np.full(count, LATEST)
    np.maximum.at(found, groups, values)
    return found
