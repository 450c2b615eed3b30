"""A dictionary that all processes have, with news of what changes in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from flexgroup.replica.calls import ordered
from flexgroup.replica.object import Replica


class Dict(Replica):
    """Keys are texts. Reading `entries` asks nobody; after `caught_up`, they are not old."""

    def __init__(self) -> None:
        self.entries: dict[str, Any] = {}
        self.changes: dict[str, int] = {}
        """The number of the change that has put each key."""
        self.changed = 0
        """How many changes there were."""

    @ordered
    def put(self, key: str, value: Any) -> None:
        self._change(key)
        self.entries[key] = value

    @ordered
    def pop(self, key: str) -> Any:
        """Delete the key, and return its value, or None if there is none."""
        if key not in self.entries:
            return None
        del self.changes[key]
        return self.entries.pop(key)

    @ordered
    def update(self, items: dict[str, Any]) -> None:
        """Put all of them, at one place in the order."""
        for key, value in items.items():
            self._change(key)
            self.entries[key] = value

    @ordered
    def swap(self, key: str, expected: Any, value: Any) -> bool:
        """Put the value if the key has the expected one (None: if it has none)."""
        is_so = bool(self.entries.get(key) == expected)
        if is_so:
            self._change(key)
            self.entries[key] = value
        return is_so

    def _change(self, key: str) -> None:
        self.changed += 1
        self.changes[key] = self.changed

    async def get(self, key: str) -> Any:
        """Return a value that is not older than this call, or None if the key has none."""
        await self.caught_up()
        return self.entries.get(key)

    async def watch(self, key: str) -> AsyncIterator[Any]:
        """Iterate over the values of a key: that of now, and each that this process comes to see.

        None stands for none. Of values that follow one another at once, the last one is given.
        """
        seen = -1
        while True:
            seen = await self.until(partial(self._news, key, seen)) - 1
            yield self.entries.get(key)

    def _news(self, key: str, seen: int) -> int:
        """Return one more than the number of the key's change, 0 without one, if it is another."""
        change = self.changes.get(key, 0)
        return change + 1 if change != seen else 0
