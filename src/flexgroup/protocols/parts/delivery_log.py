"""The messages that a process has delivered and that others may have to be told of.

All processes deliver the same messages in one order, so that a count says which ones a process has
delivered. What all have delivered can be forgotten.
"""

from __future__ import annotations

from typing import Final, final

from flexgroup.core.layer import Record
from flexgroup.core.message import MessageId

ALL: Final = 1 << 60
"""More messages than anybody delivers: the count of a part of the system with nobody in it."""

KEPT: Final = 16
"""How many messages are kept without a look whether somebody may still need them."""


@final
class DeliveryLog(Record):
    """The end of the sequence of delivered messages, and how far the others are known to be."""

    counts: list[int]
    """How many messages each part of the system is known to have delivered."""
    count: int = 0
    """How many messages this process has delivered, forgotten ones included."""
    kept: list[tuple[MessageId, int]] = []
    """The last of them, in order, each with its sn."""
    look_at: int = KEPT
    """How many messages are kept before the next look at `counts`."""

    def add(self, m: MessageId, sn: int) -> None:
        self.kept.append((m, sn))
        self.count += 1

    def forget_if_many(self) -> None:
        """Forget what all have delivered, if there is much to look through."""
        if len(self.kept) < self.look_at:
            return
        stable = min([self.count, *self.counts])
        forgotten = self.count - len(self.kept)
        if stable > forgotten:
            del self.kept[: stable - forgotten]
        self.look_at = 2 * len(self.kept) + KEPT
