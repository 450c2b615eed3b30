"""The network between machines: how long a packet travels, and which ways are cut."""

from __future__ import annotations

from dataclasses import dataclass

from flexgroup.virtual.world import World


@dataclass(frozen=True)
class Latency:
    """How many seconds a packet travels: at least so long, and a tail of this mean."""

    least: float = 0.0002
    tail: float = 0.0001
    within: float = 0.00002
    """How long it takes between processes of one machine."""


class Network:
    def __init__(self, world: World, latency: Latency) -> None:
        self.latency = latency
        self._world = world
        self._cut: set[tuple[str, str]] = set()
        self._slow: dict[tuple[str, str], float] = {}

    def is_open(self, source: str, target: str) -> bool:
        return (source, target) not in self._cut

    def travel(self, source: str, target: str) -> float:
        """How long the next packet takes on this way."""
        if source == target:
            return self.latency.within * self._world.random.uniform(0.5, 1.5)
        seconds = self.latency.least + self._world.random.expovariate(1) * self.latency.tail
        return seconds + self._slow.get((source, target), 0.0)

    # Faults.

    def cut(self, source: str, target: str) -> None:
        """Let nothing pass on this way any more."""
        self._cut.add((source, target))

    def slow(self, source: str, target: str, seconds: float) -> None:
        """Let everything on this way take longer by so much."""
        self._slow[source, target] = seconds

    def heal(self) -> None:
        self._cut.clear()
        self._slow.clear()
