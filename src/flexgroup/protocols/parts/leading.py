"""What the leader of a ballot knows of it, in a log that is agreed on ballot by ballot."""

from __future__ import annotations

from typing import final

from flexgroup.core.layer import Record
from flexgroup.core.message import Message
from flexgroup.protocols.parts.ledger import Vote


@final
class Leading(Record):
    """What the leader of a ballot knows of it."""

    free: int
    """The first slot for which nothing is proposed."""
    is_prepared: bool = False
    """Whether phase 1 is over."""
    promises: set[int] = set()
    """Who promised, during phase 1."""
    reported: dict[int, Vote] = {}
    """The vote of the highest ballot that they told, for each slot."""
    accepts: dict[int, set[int]] = {}
    """Who accepted, for each slot that is not chosen yet."""
    have: dict[int, int] = {}
    """The slots that each follower has delivered, from the first on."""

    def first(self) -> int:
        """The first slot of which it may have to tell again what it proposes."""
        return min(self.accepts, default=self.free)

    def report(self, votes: tuple[int, ...], messages: tuple[Message, ...]) -> None:
        """Take in what a replica tells of its votes, as `Ledger.votes_since` gives them.

        Of several, that of the highest ballot counts (Lamport 2001, P2c).
        """
        start = 0
        for place in range(0, len(votes), 3):
            slot, ballot, count = votes[place : place + 3]
            if slot not in self.reported or ballot > self.reported[slot].ballot:
                self.reported[slot] = Vote(ballot, messages[start : start + count])
            start += count
