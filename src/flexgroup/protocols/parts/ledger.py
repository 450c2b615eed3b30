"""A replica's ledger, as Lamport 1998 calls it: its votes for the slots of a log, and what came of
them."""

from __future__ import annotations

from typing import final

from flexgroup.core.layer import Record, Stored
from flexgroup.core.message import Message, Packet, Stamp
from flexgroup.protocols.parts.paxos_packets import Accepting
from flexgroup.protocols.parts.taken_messages import TakenMessages, taken_messages


@final
class Promised(Packet):
    """The ballot that was promised, in stable storage with what was delivered below a slot.

    So many they were; which ones, `counts` and `ahead` say as `TakenMessages.told` does.
    """

    ballot: Stamp
    recent: int
    delivered: int
    counts: tuple[int, ...]
    ahead: tuple[int, ...]


@final
class Vote(Record):
    """A batch, and the ballot in which it was accepted."""

    ballot: Stamp
    messages: tuple[Message, ...]


@final
class Ledger(Record):
    """The votes for the slots from `recent` on, and which of them are chosen and delivered."""

    votes: dict[int, Vote] = {}
    """The last vote for each slot that is recent."""
    next: int = 0
    """The first slot that is not delivered."""
    chosen: dict[int, Stamp] = {}
    """The lowest ballot in which a batch is known to be chosen, for slots from `next` on."""
    delivered: TakenMessages = TakenMessages()
    stable: int = 0
    """All replicas have delivered the slots below, which are forgotten."""
    recent: int = 0
    """The slots below are delivered here. Those that are not stable are kept for replicas that lack
    them, and only in stable storage."""
    forgotten: TakenMessages = TakenMessages()
    """What was delivered in the slots below `recent`."""
    covered: int = 0
    """How many of the messages that were delivered the layer above has saved, if there is one; an
    application remembers all of them."""

    def entries(self, first: int, last: int) -> list[tuple[int, Packet]]:
        """These slots as stable storage has them, which are recent and delivered."""
        votes = [(slot, self.votes[slot]) for slot in range(first, last)]
        return [(slot, Accepting(vote.ballot, vote.messages)) for slot, vote in votes]

    def from_next(self) -> dict[int, Vote]:
        """A copy of the votes for slots that are not delivered."""
        return {slot: vote.copy() for slot, vote in self.votes.items() if slot >= self.next}

    def votes_since(self, first: int) -> tuple[tuple[int, ...], tuple[Message, ...]]:
        """The votes for slots from this one on, and the messages of all of them.

        The votes are flat: a slot, the ballot in which a batch was accepted for it, the number of
        messages in the batch; another slot, and so on.
        """
        votes: list[int] = []
        messages: list[Message] = []
        for slot in sorted(self.votes):
            if slot >= first:
                vote = self.votes[slot]
                votes += (slot, vote.ballot, len(vote.messages))
                messages += vote.messages
        return tuple(votes), tuple(messages)

    def vote(self, ballot: Stamp, slot: int, messages: tuple[Message, ...]) -> None:
        self.votes[slot] = Vote(ballot, messages)

    def choose(self, ballot: Stamp, slot: int) -> None:
        """Know that what is proposed for this slot in this ballot is chosen."""
        if slot >= self.next:
            self.chosen[slot] = min(ballot, self.chosen.get(slot, ballot))

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

    def promised(self, ballot: Stamp) -> Promised:
        """What to save with the promise, so that who starts again begins with slot `recent`."""
        return Promised(ballot, self.recent, self.forgotten.count, *self.forgotten.told())

    def restore(self, stored: Stored, is_top: bool) -> list[Message]:
        """Begin with what was stored, and where the layer above is, or the application, which
        was given so much.

        What was delivered was chosen, and the last vote for a slot that was chosen is for that
        batch. The messages that are lacking above of the last such batch are returned.
        """
        saved = stored.saved
        self.covered = 0 if is_top else stored.delivered
        if isinstance(saved, Promised):
            self.stable = self.recent = self.next = saved.recent
            if stored.archived > stored.first:
                self.stable = stored.first
            self.delivered = taken_messages(saved.delivered, saved.counts, saved.ahead)
            self.forgotten = self.delivered.copy()
        for slot, entry in stored.log.items():
            if slot >= self.recent and isinstance(entry, Accepting):
                self.votes[slot] = Vote(entry.ballot, entry.messages)
        lacking: list[Message] = []
        while self.next in self.votes and self.delivered.count < stored.delivered:
            had = self.delivered.count
            lacking = self.take_next()[stored.delivered - had :]
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

    def is_next_covered(self) -> bool:
        """Tell whether the layer above has saved all that the first recent slot led to."""
        messages = self.votes[self.recent].messages
        new = sum([not self.forgotten.has(m.id) for m in messages])
        return self.forgotten.count + new <= self.covered

    def sets_aside(self, last: int, stable: int, is_top: bool) -> bool:
        """Have the first recent slot in stable storage only, or forget it if it is stable; unless
        that is `last`, or a layer above would have to be told of it again."""
        goes_on = self.recent < last and (is_top or self.is_next_covered())
        if goes_on:
            for m in self.votes.pop(self.recent).messages:
                if not self.forgotten.has(m.id):
                    self.forgotten.add(m.id)
            self.recent += 1
        self.stable = max(self.stable, min(stable, self.recent))
        return goes_on

    def lacks_what_is_set_aside(self, first: int) -> bool:
        """Tell whether who has nothing from this slot on lacks a slot that is not recent here.

        What is stable nobody lacks.
        """
        return max(first, self.stable) < self.recent
