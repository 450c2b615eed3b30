"""Which messages a replica has taken, whoever tells it of them again, in bounded memory."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Final, final

from flexgroup.core.layer import Record
from flexgroup.core.message import MessageId, message_id, origin_of, seq_of

AHEAD: Final = 4096
"""How many later messages of its origin overtake a message before it is taken for lost, or for one
that goes to others. Nobody has as many under way: servers let 1,024 be."""


@final
class TakenMessages(Record):
    """The messages that were taken, each once.

    An origin's messages may have gaps for ever: some go to other groups, some are lost with all
    that had heard of them, and an origin that starts again leaves numbers out. So a gap is closed
    when enough of the origin's messages beyond it were taken. Replicas that take the same messages
    in the same order close it at the same moment.
    """

    last: dict[int, int] = {}
    """The messages of each origin before this number were taken, or will not be."""
    ahead: dict[int, list[int]] = {}
    """The numbers beyond a gap that were taken, ascending, of each origin that has some."""
    count: int = 0
    """How many were taken."""

    def has(self, m: MessageId) -> bool:
        origin = origin_of(m)
        seq = seq_of(m)
        if seq < self.last.get(origin, 0):
            return True
        ahead = self.ahead.get(origin)
        if ahead is None:
            return False
        place = bisect_left(ahead, seq)
        return place < len(ahead) and ahead[place] == seq

    def add(self, m: MessageId) -> None:
        """Take a message that was not taken before."""
        self.count += 1
        origin = origin_of(m)
        seq = seq_of(m)
        ahead = self.ahead.get(origin)
        if seq != self.last.get(origin, 0):
            if ahead is None:
                ahead = self.ahead[origin] = []
            insort(ahead, seq)
            if len(ahead) <= AHEAD:
                return
            seq = ahead.pop(0)
        seq += 1
        if ahead is not None:
            passed = 0
            while passed < len(ahead) and ahead[passed] == seq:
                seq += 1
                passed += 1
            del ahead[:passed]
            if not ahead:
                del self.ahead[origin]
        self.last[origin] = seq

    def told(self) -> tuple[tuple[int, ...], tuple[MessageId, ...]]:
        """All but the count, to be stored: an origin, its `last`, another origin, ...; and those
        ahead."""
        counts: list[int] = []
        for origin in sorted(self.last):
            counts += (origin, self.last[origin])
        ahead = [message_id(o, seq) for o in sorted(self.ahead) for seq in self.ahead[o]]
        return tuple(counts), tuple(ahead)

    def take_over(self, count: int, counts: tuple[int, ...], ahead: tuple[MessageId, ...]) -> None:
        """Begin with the messages that `told` told of, so many of them."""
        self.last = dict(zip(counts[::2], counts[1::2], strict=True))
        self.ahead = {}
        self.count = count
        for m in ahead:
            self.ahead.setdefault(origin_of(m), []).append(seq_of(m))


def taken_messages(
    count: int, counts: tuple[int, ...], ahead: tuple[MessageId, ...]
) -> TakenMessages:
    """The messages that `told` told of."""
    found = TakenMessages()
    found.take_over(count, counts, ahead)
    return found
