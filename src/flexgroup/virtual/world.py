"""What all processes of a virtual world share: the clock, the queue of events, and chance."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random
from typing import Any

Call = Callable[..., None]


class World:
    """Time passes only from one event to the next."""

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        """The time in seconds."""
        self.random = Random(seed)
        self._queue: list[tuple[float, int, Call, tuple[Any, ...]]] = []
        self._events_ever = 0

    def at(self, when: float, call: Call, *args: Any) -> None:
        """Have this done at that time, after what was asked for the same time before."""
        self._events_ever += 1
        heapq.heappush(self._queue, (max(when, self.now), self._events_ever, call, args))

    def after(self, seconds: float, call: Call, *args: Any) -> None:
        self.at(self.now + seconds, call, *args)

    def run(self, until: float) -> None:
        """Let everything happen that is due until then."""
        queue = self._queue
        while queue and queue[0][0] <= until:
            self.now, _, call, args = heapq.heappop(queue)
            call(*args)
        self.now = max(self.now, until)
