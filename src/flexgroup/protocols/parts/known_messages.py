"""Which messages of each source a process knows, in no more memory than there are gaps."""

from __future__ import annotations

from typing import final

from flexgroup.core.layer import Record
from flexgroup.core.message import MessageId, message_id, origin_of, seq_of


@final
class KnownMessages(Record):
    """The messages of all sources that are known, say because they have been delivered."""

    last: dict[int, int] = {}
    """How many messages of each source, from its first on, are known without a gap."""
    ahead: set[MessageId] = set()
    """The messages that are known while an earlier one of the same source is not."""

    def count(self) -> int:
        return sum(self.last.values()) + len(self.ahead)

    def has(self, m: MessageId) -> bool:
        return seq_of(m) < self.last.get(origin_of(m), 0) or m in self.ahead

    def add(self, m: MessageId) -> None:
        self.ahead.add(m)
        source = origin_of(m)
        turn = self.last.get(source, 0)
        while message_id(source, turn) in self.ahead:
            self.ahead.remove(message_id(source, turn))
            turn += 1
        self.last[source] = turn

    def told(self) -> tuple[tuple[int, ...], tuple[MessageId, ...]]:
        """The known messages for others to `merge`: a source, its count, ..., and those ahead."""
        counts: list[int] = []
        for source in sorted(self.last):
            counts += (source, self.last[source])
        return tuple(counts), tuple(sorted(self.ahead))

    def merge(self, counts: tuple[int, ...], ahead: tuple[MessageId, ...]) -> None:
        """Know what another process told as well."""
        for at in range(0, len(counts), 2):
            source = counts[at]
            self.last[source] = max(counts[at + 1], self.last.get(source, 0))
        messages = sorted([*self.ahead, *ahead])
        self.ahead.clear()
        for m in messages:
            if not self.has(m):
                self.add(m)
