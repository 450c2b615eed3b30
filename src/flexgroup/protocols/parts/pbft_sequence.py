"""The sequence of a replica that does not trust the others: what is decided and delivered, and what
of it others may lack."""

from __future__ import annotations

from typing import final

from flexgroup.core.layer import Layer, Record
from flexgroup.core.message import Message, Packet
from flexgroup.protocols.parts.pbft_packets import Batch, Fetched, digest_after
from flexgroup.protocols.parts.taken_messages import TakenMessages


@final
class Sequence(Record):
    """The batches that are decided, by sequence number from 1 on."""

    last: int = 0
    """The last number whose batch is delivered."""
    digest: bytes = b""
    """That of all that was delivered."""
    taken: TakenMessages = TakenMessages()
    """What was delivered, each once."""
    batches: dict[int, tuple[Message, ...]] = {}
    """Those that wait for their turn, and those that were delivered lately."""
    digests: dict[int, bytes] = {}
    """The digests of those that wait for their turn."""
    aside: int = 0
    """The batches up to this number are not at hand: in stable storage, or nobody lacks them."""
    dropped: int = 0
    """Nobody lacks the batches up to this number."""

    def decide(self, number: int, digest: bytes, messages: tuple[Message, ...]) -> None:
        self.batches[number] = messages
        self.digests[number] = digest

    def has_next(self) -> bool:
        return self.last + 1 in self.digests

    def take_next(self) -> list[Message]:
        """What the next batch has that is not delivered yet."""
        self.last += 1
        found: list[Message] = []
        for m in self.batches[self.last]:
            if not self.taken.has(m.id):
                self.taken.add(m.id)
                found.append(m)
        self.digest = digest_after(self.digest, self.digests.pop(self.last))
        return found

    def keep_recent(self, layer: Layer, recent: int, by_all: int) -> None:
        """Have at hand only what is recent; the rest is stored for those that lack it."""
        stored = self.set_aside(recent, by_all)
        for number, batch in stored:
            layer.write(number, batch)
        if stored:
            layer.archive(self.aside + 1)
        if self.drop(by_all):
            layer.truncate(by_all + 1)

    def set_aside(self, recent: int, by_all: int) -> list[tuple[int, Packet]]:
        """Have at hand only batches after these two, and return those to be stored: all replicas
        have the others."""
        stored: list[tuple[int, Packet]] = []
        last = max(recent, min(by_all, self.last))
        for number in range(self.aside + 1, last + 1):
            batch = self.batches.pop(number)
            if number > by_all:
                stored.append((number, Batch(batch)))
        self.aside = max(self.aside, last)
        return stored

    def drop(self, by_all: int) -> bool:
        """Know that all replicas have the batches up to this number, and tell whether some of them
        may be in stable storage."""
        before = self.dropped
        self.dropped = max(before, min(by_all, self.aside))
        return before < self.dropped < self.aside

    def piece(self, first: int, last: int) -> list[Fetched]:
        """What is at hand of these batches, and delivered."""
        numbers = range(max(first, self.aside + 1), min(last, self.last) + 1)
        return [Fetched(number, self.batches[number]) for number in numbers]

    def is_aside(self, number: int) -> bool:
        """Tell whether this batch has to be recalled from stable storage."""
        return self.dropped < number <= self.aside
