"""What all processes of a virtual world share: the clock, the queue of events, and chance."""

from __future__ import annotations

import heapq
from asyncio import AbstractEventLoop
from asyncio.events import _set_running_loop
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, cast, final

Call = Callable[..., None]

Event = tuple[float, int, Call, tuple[Any, ...]]
"""When it happens, its number among all, and what happens then."""


@final
class World:
    """Time passes only from one event to the next."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.now = 0.0
        """The time in seconds."""
        self._queue: list[Event] = []
        self._due: deque[Event] = deque()
        """Those that were asked for at the time at which they happen, which most are: they are in
        order already."""
        self._events_ever = 0
        self._running: object = None

    def nanoseconds(self) -> int:
        """The time as servers record it."""
        return int(self.now * 1e9)

    def chance(self, whose: str) -> Random:
        """A source of chance for one part of the world.

        Each has its own, so that what happens in one place changes nothing in another: a schedule
        from which something is left out goes on much as before.
        """
        return Random(f"{self._seed} {whose}")

    def at(self, when: float, call: Call, *args: Any) -> None:
        """Have this done at that time, after what was asked for the same time before."""
        self._events_ever += 1
        now = self.now
        if when > now:
            heapq.heappush(self._queue, (when, self._events_ever, call, args))
        else:
            self._due.append((now, self._events_ever, call, args))

    def after(self, seconds: float, call: Call, *args: Any) -> None:
        self.at(self.now + seconds, call, *args)

    def enter(self, loop: object) -> None:
        """Let this be the loop that runs, for whoever asks asyncio.

        It stays that until another one runs or the world stands still: telling asyncio takes a call
        of the system.
        """
        if loop is not self._running:
            self._running = loop
            _set_running_loop(cast(AbstractEventLoop | None, loop))

    def run(self, until: float) -> None:
        """Let everything happen that is due until then."""
        queue = self._queue
        due = self._due
        try:
            while True:
                # What was asked for earlier, for this same time, comes first.
                if due and not (queue and queue[0][0] <= self.now and queue[0][1] < due[0][1]):
                    _, _, call, args = due.popleft()
                elif queue and queue[0][0] <= until:
                    self.now, _, call, args = heapq.heappop(queue)
                else:
                    break
                call(*args)
        finally:
            self.enter(None)
        self.now = max(self.now, until)
