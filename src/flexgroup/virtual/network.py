"""The network between machines: how long a packet travels, and which ways are cut."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, final

from flexgroup.virtual.world import World


class Latency(NamedTuple):
    """How many seconds a packet travels: at least so long, and a tail of this mean."""

    least: float = 0.0002
    tail: float = 0.0001
    spread: float = 0.0
    """Each way between two machines is longer than that by a time of its own, up to this."""
    within: float = 0.00002
    """How long it takes between processes of one machine."""


@final
class Way:
    """What packets pass from one machine to another, or within one."""

    def __init__(self, world: World, latency: Latency, source: str, target: str) -> None:
        self.is_cut = False
        """Nothing passes."""
        self.longer = 0.0
        """Everything takes longer by so much."""
        self.uneven = 0.0
        """Each packet takes longer by another time, up to so much."""
        self.bytes_in_a_second = math.inf
        """How much passes."""
        self._free_at = 0.0
        """When the last of what was sent has left."""
        self._world = world
        self._random = world.chance(f"way {source} {target}")
        if source == target:
            self.least = latency.within / 2
            self._tail = 0.0
            self._jitter = latency.within
        else:
            self.least = latency.least + self._random.uniform(0, latency.spread)
            self._tail = latency.tail
            self._jitter = 0.0

    def carry(self, size: int) -> float:
        """How long so many bytes take that are sent now, behind what was sent before."""
        now = self._world.now
        self._free_at = max(self._free_at, now) + size / self.bytes_in_a_second
        return self._free_at - now + self.travel()

    def travel(self) -> float:
        """How long the next packet takes, if it is a small one."""
        chance: float = self._random.random()
        seconds = self.least + self._jitter * chance + self.longer
        if self._tail:
            seconds -= self._tail * math.log(1.0 - chance)
        if self.uneven:
            more: float = self._random.random()
            seconds += self.uneven * more
        return seconds


@final
class Network:
    def __init__(self, world: World, latency: Latency) -> None:
        self._world = world
        self._latency = latency
        self._ways: dict[tuple[str, str], Way] = {}
        self.when_cut: Callable[[], None] | None = None
        """Called when a way is cut."""

    def way(self, source: str, target: str) -> Way:
        way = self._ways.get((source, target))
        if way is None:
            way = Way(self._world, self._latency, source, target)
            self._ways[source, target] = way
        return way

    # Faults.

    def cut(self, source: str, target: str) -> None:
        """Let nothing pass on this way any more."""
        self.way(source, target).is_cut = True
        if self.when_cut is not None:
            self.when_cut()

    def slow(self, source: str, target: str, seconds: float) -> None:
        """Let everything on this way take longer by so much."""
        self.way(source, target).longer = seconds

    def make_uneven(self, source: str, target: str, seconds: float) -> None:
        """Let each packet on this way take longer by another time, up to so much: what one
        connection carries overtakes what another one does."""
        self.way(source, target).uneven = seconds

    def narrow(self, source: str, target: str, bytes_in_a_second: float) -> None:
        """Let no more than that pass on this way."""
        self.way(source, target).bytes_in_a_second = bytes_in_a_second

    def heal(self) -> None:
        for way in self._ways.values():
            way.is_cut = False
            way.longer = way.uneven = 0.0
            way.bytes_in_a_second = math.inf
