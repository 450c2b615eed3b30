"""A round of the event loop: everything that has arrived is handled before anything goes out.

So nothing waits when there is little to do, and many messages share a frame when there is much.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import final


@final
class Round:
    work: Callable[[], None]
    """What is to be done at the end of a round that was asked for."""
    awoke: Callable[[], None]
    """Is told, before anything else happens, that this server was stopped for a while."""

    def __init__(self, stall: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._stall = int(stall * 1000)
        """If nothing happens for so many milliseconds, the server was stopped."""
        self._latest = self.now()
        self._is_due = False
        self.number = 0
        """Counts the rounds at whose end something was done."""
        self.began = 0
        """When the round began at whose end the work is due, in milliseconds."""
        self._waiting: list[Callable[[], None]] = []

    def now(self) -> int:
        """The time in milliseconds."""
        return int(self._loop.time() * 1000)

    def request(self) -> None:
        """Have the work done at the end of this round."""
        if not self._is_due:
            self._is_due = True
            self.began = now = self.now()
            self._loop.call_soon(self.work)
            if now - self._latest > self._stall:
                self.tick()
                self.awoke()
            self._latest = now

    def tick(self) -> None:
        """The server is not stopped: to be called much more often than it may stall."""
        self._latest = self.now()

    def end(self) -> int:
        """The work is being done; the time that it is to go by."""
        now = self.began if self._is_due else self.now()
        self._is_due = False
        self.number += 1
        return now

    def flush_later(self, flush: Callable[[], None]) -> None:
        """Have somebody for whom something has gathered flushed at the end of this round."""
        self._waiting.append(flush)
        self.request()

    def flush(self) -> None:
        """Flush everybody who waits for it."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for flush in waiting:
                flush()
