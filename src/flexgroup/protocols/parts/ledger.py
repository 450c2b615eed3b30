"""A replica's ledger, as Lamport 1998 calls it: its votes for the slots of a log, and what came of
them."""

from __future__ import annotations

from typing import final

from flexgroup.core.layer import Record
from flexgroup.core.message import Message, Stamp
from flexgroup.protocols.parts.known_messages import KnownMessages


@final
class Vote(Record):
    """A batch, and the ballot in which it was accepted."""

    ballot: Stamp
    messages: tuple[Message, ...]


@final
class Ledger(Record):
    """The votes for the slots from `stable` on, and which of them are chosen and delivered."""

    votes: dict[int, Vote] = {}
    """The last vote for each slot that is not stable."""
    next: int = 0
    """The first slot that is not delivered."""
    chosen: dict[int, Stamp] = {}
    """The lowest ballot in which a batch is known to be chosen, for slots from `next` on."""
    delivered: KnownMessages = KnownMessages()
    stable: int = 0
    """All replicas have delivered the slots below, which are forgotten."""
    forgotten: KnownMessages = KnownMessages()
    """What was delivered in the slots below `stable`."""

    def from_next(self) -> dict[int, Vote]:
        """A copy of the votes for slots that are not delivered."""
        return {slot: vote.copy() for slot, vote in self.votes.items() if slot >= self.next}

    def take_chosen(self) -> list[Message]:
        """What is to be delivered now: in the order of slots, without gaps, each message once.

        What a ballot above that in which a batch was chosen proposes is the same batch.
        """
        messages: list[Message] = []
        while self.next in self.chosen and self.next in self.votes:
            if self.votes[self.next].ballot < self.chosen[self.next]:
                break
            del self.chosen[self.next]
            messages += self.take_next()
        return messages

    def take_next(self) -> list[Message]:
        """What the batch that was accepted for the next slot has that is not delivered yet."""
        found: list[Message] = []
        for m in self.votes[self.next].messages:
            if not self.delivered.has(m.id):
                self.delivered.add(m.id)
                found.append(m)
        self.next += 1
        return found

    def recall(self, count: int) -> list[Message]:
        """Find the place where `count` messages have been delivered, after all was forgotten.

        What was delivered was chosen, and the last vote for a slot that was chosen is for that
        batch. The messages that were not delivered of the last such batch are returned.
        """
        lacking: list[Message] = []
        while self.next in self.votes and self.delivered.count() < count:
            had = self.delivered.count()
            lacking = self.take_next()[count - had :]
        return lacking

    def choose_stable(self, stable: int) -> None:
        """Know that what this replica accepted for the slots below is chosen, as it delivered it
        once."""
        for slot in range(self.next, stable):
            self.chosen[slot] = self.votes[slot].ballot

    def has_votes(self, stable: int) -> bool:
        """Tell whether a vote is there for all slots below that are not delivered."""
        if stable - self.next > len(self.votes):
            return False
        return self.votes.keys() >= set(range(self.next, stable))

    def forget_next(self) -> None:
        """Forget the first slot that is there."""
        for m in self.votes.pop(self.stable).messages:
            if not self.forgotten.has(m.id):
                self.forgotten.add(m.id)
        self.stable += 1
