"""What a primary proposed to its group of replicas, but for what all of them have delivered."""

from __future__ import annotations

from typing import final

from flexgroup.core.layer import Record
from flexgroup.core.message import Message
from flexgroup.protocols.parts.known_messages import KnownMessages

Proposed = tuple[int, Message]
"""A message, and the local timestamp that the primary gave it."""


@final
class Proposals(Record):
    """Messages in the order of their local timestamps, the first ones forgotten."""

    entries: list[Proposed] = []
    stable: int = 0
    """Up to which timestamp all members have delivered them, and forgotten them."""
    done: int = 0
    """How many of the entries, from the first on, are delivered here."""
    have: dict[int, int] = {}
    """Up to which timestamp other members, in this epoch, have delivered all of them."""

    def begin(self, entries: list[Proposed]) -> None:
        """Take these over, with which an epoch begins."""
        self.entries = entries
        self.done = 0
        self.have.clear()

    def delivered_until(self, delivered: KnownMessages) -> int:
        """The timestamp up to which all of them are delivered here."""
        while self.done < len(self.entries) and delivered.has(self.entries[self.done][1].id):
            self.done += 1
        return self.entries[self.done - 1][0] if self.done else self.stable

    def forget(self, stable: int) -> None:
        """All members have delivered these, and have acknowledged them in this epoch."""
        count = 0
        while count < self.done and self.entries[count][0] <= stable:
            count += 1
        del self.entries[:count]
        self.done -= count
        self.stable = max(stable, self.stable)

    def flat(self) -> tuple[tuple[int, ...], tuple[Message, ...]]:
        """The timestamps, and the messages."""
        return tuple([ts for ts, _ in self.entries]), tuple([m for _, m in self.entries])


def last(entries: list[Proposed]) -> int:
    """The highest timestamp among the entries."""
    return entries[-1][0] if entries else 0
