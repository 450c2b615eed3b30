"""A place where processes wait until so many of them are there."""

from __future__ import annotations

from functools import partial

from flexgroup.replica.calls import ordered
from flexgroup.replica.object import Replica


class Barrier(Replica):
    def __init__(self, parties: int) -> None:
        self.parties = parties
        self.waiting: list[str] = []
        self.rounds = 0
        """How often all of them were there."""

    @ordered
    def arrive(self) -> int:
        """Say that the caller waits, and return the round it waits for."""
        awaited = self.rounds + 1
        if self.caller not in self.waiting:
            self.waiting.append(self.caller)
        if len(self.waiting) >= self.parties:
            self.waiting.clear()
            self.rounds = awaited
        return awaited

    def left(self, member: str) -> None:
        if member in self.waiting:
            self.waiting.remove(member)

    async def wait(self) -> int:
        """Wait until so many processes wait, and return the number of the round."""
        while True:
            awaited = await self.arrive()
            await self.until(partial(self._is_settled, awaited))
            # Otherwise its server has failed, and the others wait for somebody else.
            if self.rounds >= awaited:
                return awaited

    def _is_settled(self, awaited: int) -> bool:
        return self.rounds >= awaited or self.process not in self.waiting
