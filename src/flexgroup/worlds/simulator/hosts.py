"""The processes of a simulation, with what the simulator keeps of each."""

from __future__ import annotations

from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64, mypyc_attr

from flexgroup.core.layer import Stored
from flexgroup.core.message import NO_MESSAGE
from flexgroup.core.stack import Stack

DEPTHS_KEPT: Final = 1 << 16
"""Of how many messages a process remembers the depth at which it last heard of them."""


FEW: Final = 16
"""Targets of packets in order that are found by looking through them all."""

MANY: Final = 256
"""Processes and clients whose last arrivals, of each at each, do not fit into the cache."""

COMPILED: Final = not __file__.endswith(".py")


@mypyc_attr(allow_interpreted_subclasses=True)
class StackFactory:
    """Builds the stack of a process, at the start and after a crash."""

    def build(self, process: int) -> Stack:
        raise NotImplementedError


@final
class Host:
    """A process of the simulation."""

    __slots__ = (
        "busy_until",
        "crash_at",
        "depths",
        "few_targets",
        "last_arrivals",
        "process",
        "saved",
        "stack",
        "step",
        "timers",
        "up",
    )

    def __init__(self, process: int, stack: Stack, crash_at: int) -> None:
        self.process = process
        self.stack = stack
        self.up = True
        self.step = 0
        """How many events of its history have been recorded."""
        self.busy_until = 0
        self.few_targets = vec[i64]()
        """Whom packets were sent to in order from here, as long as these are few."""
        self.last_arrivals = vec[i64]()
        """Of those packets, at each of the few targets; or at every process and client."""
        self.crash_at = crash_at
        self.saved: list[Stored] = [None] * len(stack.layers)
        self.timers: dict[tuple[int, str], int] = {}
        self.depths: dict[int, int] = {}
        """Communication steps since its multicast, for messages heard of and kept waiting."""

    def in_order(self, target: int, arrival: int, total: int) -> int:
        """When a packet arrives that would take until `arrival` and must not overtake others."""
        place = self._place_of(i64(target), total)
        last = int(self.last_arrivals[place])
        if arrival < last:
            return last
        self.last_arrivals[place] = i64(arrival)
        return arrival

    def _place_of(self, target: i64, total: int) -> i64:
        """In `last_arrivals`."""
        few = self.few_targets
        count: i64 = len(few)
        if count == 0 and len(self.last_arrivals) > 0:
            return target
        place: i64 = 0
        while place < count:
            if few[place] == target:
                return place
            place += 1
        if COMPILED and count < FEW and total > MANY:
            self.few_targets = append(few, target)
            self.last_arrivals = append(self.last_arrivals, i64(0))
            return place
        arrivals = vec[i64]([0] * total)
        place = 0
        while place < count:
            arrivals[few[place]] = self.last_arrivals[place]
            place += 1
        self.few_targets = vec[i64]()
        self.last_arrivals = arrivals
        return target

    def remember_depth(self, message: int, depth: int) -> None:
        depths = self.depths
        if message != NO_MESSAGE and depth > depths.get(message, 0):
            if len(depths) >= DEPTHS_KEPT:
                del depths[next(iter(depths))]
            depths[message] = depth

    def forget_depth(self, message: int) -> int:
        depth = self.depths.get(message, 0)
        if depth:
            del self.depths[message]
        return depth
