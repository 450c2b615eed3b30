"""A lock that one process holds at a time, with a number for each holding."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

from flexgroup.core.errors import FlexGroupError
from flexgroup.replica.calls import ordered
from flexgroup.replica.object import Replica


class Lock(Replica):
    """Who holds it, and who waits, in the order in which they asked.

    A member that dies, or is taken for dead, holds it no more. Nobody can tell it so in time; so
    what the lock protects asks for `fence`, which grows, and refuses whoever has a smaller one.
    With a lease, a holder that does not renew it for so many seconds while others wait loses it.
    """

    def __init__(self, lease: float | None = None) -> None:
        self.line: list[str] = []
        """The holder, and those who wait."""
        self.fence = 0
        """How often somebody came to hold it."""
        self.renewed = 0
        self._lease = lease
        self._turn = asyncio.Lock()

    @property
    def holder(self) -> str | None:
        return self.line[0] if self.line else None

    @ordered
    def ask(self) -> None:
        if self.caller not in self.line:
            self.line.append(self.caller)
            self.fence += len(self.line) == 1

    @ordered
    def release(self) -> None:
        self._remove(self.caller)

    @ordered
    def renew(self) -> None:
        if self.holder == self.caller:
            self.renewed += 1

    @ordered
    def expire(self, fence: int, renewed: int) -> None:
        if (self.fence, self.renewed) == (fence, renewed) and self.line:
            self._remove(self.line[0])

    def left(self, member: str) -> None:
        self._remove(member)

    def _remove(self, member: str) -> None:
        if member in self.line:
            was_held = self.line[0] == member
            self.line.remove(member)
            self.fence += was_held and bool(self.line)

    async def acquire(self) -> int:
        """Wait until this process holds the lock, and return the number of the holding."""
        try:
            while True:
                await self.ask()
                # It is in the line no more if its server has failed: then it asks again.
                if await self._comes_to_hold():
                    return self.fence
        except (Exception, asyncio.CancelledError):
            with suppress(FlexGroupError):
                await self.release()
            raise

    async def _comes_to_hold(self) -> bool:
        while self.process in self.line[1:]:
            fence, renewed = self.fence, self.renewed
            try:
                async with asyncio.timeout(self._lease):
                    await self.until(partial(self._is_news, fence, renewed))
            except TimeoutError:
                await self.expire(fence, renewed)
        return self.holder == self.process

    def _is_news(self, fence: int, renewed: int) -> bool:
        return (self.fence, self.renewed) != (fence, renewed) or self.process not in self.line

    @asynccontextmanager
    async def held(self) -> AsyncIterator[int]:
        """Hold the lock in `async with lock.held() as fence:`; tasks of one process take turns."""
        async with self._turn:
            fence = await self.acquire()
            try:
                yield fence
            finally:
                await self.release()
