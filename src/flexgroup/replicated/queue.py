"""A queue from which each item is taken once, whoever asks for it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from flexgroup.core.errors import FlexGroupError
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

    @ordered
    def put_back(self, item: Any) -> None:
        """Put an item in front of the others: it was taken, and not used."""
        self.items.insert(0, item)

    async def get(self) -> Any:
        """Take the first item, and wait for one if need be. Who is cancelled has taken none."""
        while True:
            await self.until(lambda: self.items)
            taking = asyncio.ensure_future(self.take())
            try:
                return await asyncio.shield(taking)
            except IndexError:
                pass  # another process was quicker
            except asyncio.CancelledError:
                with suppress(IndexError, FlexGroupError):
                    await self.put_back(await taking)
                raise
