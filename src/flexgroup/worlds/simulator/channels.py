"""Channels that keep the order of packets."""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

FEW: Final = 16
"""Targets that are found by looking through them all."""

MANY: Final = 256
"""Processes and clients whose last arrivals, of each at each, do not fit into the cache."""

COMPILED: Final = not __file__.endswith(".py")


@final
class FifoChannels:
    """The channels from one process, where no packet overtakes another to the same target."""

    __slots__ = ("_few_targets", "_last_arrivals", "_total")

    def __init__(self, total: int) -> None:
        self._total = total
        """The number of processes and clients."""
        self._few_targets = vec[i64]()
        """The targets that packets were sent to, as long as these are few."""
        self._last_arrivals = vec[i64]()
        """When the last packet arrives at each of these, or at each process and client."""

    def in_order(self, target: int, arrival: int) -> int:
        """When a packet arrives that would take until `arrival` and must not overtake others."""
        place = self._place_of(i64(target))
        last = int(self._last_arrivals[place])
        if arrival < last:
            return last
        self._last_arrivals[place] = i64(arrival)
        return arrival

    def _place_of(self, target: i64) -> i64:
        """The place of a target in `_last_arrivals`."""
        few = self._few_targets
        count: i64 = len(few)
        if count == 0 and len(self._last_arrivals) > 0:
            return target
        place: i64 = 0
        while place < count:
            if few[place] == target:
                return place
            place += 1
        if COMPILED and count < FEW and self._total > MANY:
            self._few_targets = append(few, target)
            self._last_arrivals = append(self._last_arrivals, i64(0))
            return place
        arrivals = vec[i64]([0] * self._total)
        place = 0
        while place < count:
            arrivals[few[place]] = self._last_arrivals[place]
            place += 1
        self._few_targets = vec[i64]()
        self._last_arrivals = arrivals
        return target
