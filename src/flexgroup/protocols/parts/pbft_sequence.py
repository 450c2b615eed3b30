"""The sequence of a replica that does not trust the others: what is decided and delivered, what it
lacks, and what others lack of it."""

from __future__ import annotations

from typing import final

from flexgroup.core.layer import Record
from flexgroup.core.message import Message, Packet
from flexgroup.protocols.parts.pbft_packets import Batch, Fetch, Fetched, digest_after
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
    aside: int = 0
    """The batches up to this number are not at hand: in stable storage, or nobody lacks them."""
    dropped: int = 0
    """Nobody lacks the batches up to this number."""

    def has_next(self) -> bool:
        return self.last + 1 in self.batches

    def take_next(self) -> list[Message]:
        """What the next batch has that is not delivered yet."""
        self.last += 1
        found: list[Message] = []
        for m in self.batches[self.last]:
            if not self.taken.has(m.id):
                self.taken.add(m.id)
                found.append(m)
        self.digest = digest_after(self.digest, self.batches[self.last])
        return found

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


@final
class CatchingUp(Record):
    """What a replica lacks and asks others for, and what others ask of it."""

    wanted: int = 0
    """The highest number that it knows it will not learn otherwise."""
    asked: int = 0
    """The last number of the piece that it asked for last."""
    copies: dict[tuple[int, int], tuple[Message, ...]] = {}
    """What others say that these numbers are, by number and replica."""
    beyond: dict[int, int] = {}
    """The highest number above the high water mark that each replica has sent something about."""
    asks: dict[int, tuple[int, int, int]] = {}
    """What others asked for and were not told yet: the first number, the last, and the view that
    they have to take part in before they do without."""

    def ask(self, process: int, first: int, last: int, view: int) -> None:
        """Take note of what a replica asks for, besides what it asked for before."""
        before = self.asks.get(process, (first, last, view))
        asked = (min(first, before[0]), max(last, before[1]), max(view, before[2]))
        self.asks[process] = asked

    def hear_from(self, process: int, view: int) -> None:
        """Take note that a replica takes part in a view, in which it is told what it lacks."""
        if process in self.asks and self.asks[process][2] <= view:
            del self.asks[process]

    def hear(self, process: int, number: int, count: int) -> int:
        """Take note that a replica has gone beyond, and tell a number that so many have reached, so
        that one of them is correct."""
        self.beyond[process] = max(number, self.beyond.get(process, 0))
        return self.reached(count)

    def reached(self, count: int) -> int:
        numbers = sorted(self.beyond.values(), reverse=True)
        return numbers[count - 1] if len(numbers) >= count else 0

    def next_piece(self, last: int, most: int) -> Fetch | None:
        """What to ask for next, when all before the last number is there; nothing, if the piece
        before is not."""
        if not self.wanted > last >= self.asked:
            return None
        self.asked = min(self.wanted, last + most)
        self.copies = {key: copy for key, copy in self.copies.items() if key[0] > last}
        return Fetch(last + 1, self.asked)

    def take(self, number: int, sender: int, messages: tuple[Message, ...], count: int) -> bool:
        """Take the copy of one replica, and tell whether so many are equal to it."""
        self.copies.setdefault((number, sender), messages)
        equal = [key for key, copy in self.copies.items() if key[0] == number and copy == messages]
        if len(equal) < count:
            return False
        self.copies = {key: copy for key, copy in self.copies.items() if key[0] != number}
        return True
