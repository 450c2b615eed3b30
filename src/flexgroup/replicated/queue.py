"""A queue from which each item is taken once, whoever asks for it."""

from __future__ import annotations

from typing import Any

from flexgroup.replica.calls import ordered
from flexgroup.replica.object import Replica


class Queue(Replica):
    def __init__(self) -> None:
        self.items: list[Any] = []

    @ordered
    def put(self, item: Any) -> int:
        """Put an item behind the others, and return how many there are."""
        self.items.append(item)
        return len(self.items)

    @ordered
    def take(self) -> Any:
        """Take the first item, or raise IndexError if there is none."""
        if not self.items:
            raise IndexError("the queue is empty")
        return self.items.pop(0)

    async def get(self) -> Any:
        """Take the first item, and wait for one if need be."""
        while True:
            await self.until(lambda: self.items)
            try:
                return await self.take()
            except IndexError:
                pass  # another process was quicker
