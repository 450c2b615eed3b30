"""How a replica of PBFT that lacks a part of the sequence is told it, by f + 1 others alike.

Not in the papers, where replicas repeat messages and send each other snapshots: here the sequence
is the state, and a replica that has left its view may be the only one that has.
"""

from __future__ import annotations

from typing import Final, final

from flexgroup.core.layer import Layer, Recall, Record
from flexgroup.core.message import Message, Packet
from flexgroup.protocols.parts.pbft_log import Slot
from flexgroup.protocols.parts.pbft_packets import Batch, Fetch, Fetched, ViewChange
from flexgroup.protocols.parts.pbft_sequence import Sequence
from flexgroup.protocols.parts.timestamps import FAR

LACK: Final = "lack"
"""The timer of who lacks what others deliver."""


@final
class CatchingUp(Record):
    """What a replica lacks and asks others for, and what others ask of it. The layer that it
    belongs to sends for it."""

    others: tuple[int, ...]
    most: int
    """How many batches are asked for at a time."""
    enough: int
    """f + 1: of so many replicas one is correct."""
    wanted: int = 0
    """The highest number that it knows it will not learn otherwise."""
    asked: int = 0
    """The last number of the piece that it asked for last."""
    lacks: int = 0
    """A number that correct replicas have committed to, and nobody has proposed here."""
    copies: dict[tuple[int, int], tuple[Message, ...]] = {}
    """What others say that these numbers are, by number and replica."""
    beyond: dict[int, int] = {}
    """The highest number above the high water mark that each replica has sent something about."""
    asks: dict[int, tuple[int, int, int]] = {}
    """What others asked for and were not told yet: the first number, the last, and the view that
    they have to take part in before they do without."""

    # Who lacks something.

    def hear(self, process: int, number: int) -> int:
        """Take note that a replica has gone beyond, and tell a number that so many have reached, so
        that one of them is correct."""
        self.beyond[process] = max(number, self.beyond.get(process, 0))
        return self.reached()

    def reached(self) -> int:
        numbers = sorted(self.beyond.values(), reverse=True)
        return numbers[self.enough - 1] if len(numbers) >= self.enough else 0

    def lacking(self, slots: dict[int, Slot], last: int) -> list[int]:
        """The numbers that correct replicas have committed to, and nobody has proposed here."""
        numbers = [number for number in slots if number > last]
        return sorted([number for number in numbers if slots[number].lacks(self.enough)])

    def wait(self, layer: Layer, slots: dict[int, Slot], last: int, ticks: int) -> None:
        """Give the first of these numbers some time to be proposed after all, one at a time."""
        if not self.lacks:
            self.lacks = min(self.lacking(slots, last), default=0)
            if self.lacks:
                layer.set_timer(LACK, ticks)

    def go_on(self, layer: Layer, slots: dict[int, Slot], last: int, ticks: int) -> None:
        """All up to the last number is delivered."""
        if last >= self.lacks > 0:
            self.lacks = 0
            layer.cancel_timer(LACK)
            self.wait(layer, slots, last, ticks)
        self.ask_on(layer, last)

    def on_timer(self, layer: Layer, slots: dict[int, Slot], last: int) -> None:
        self.want(layer, max([self.lacks, *self.lacking(slots, last)]), last)

    def want(self, layer: Layer, number: int, last: int) -> None:
        if number > self.wanted:
            self.wanted = number
            self.ask_on(layer, last)

    def ask_on(self, layer: Layer, last: int) -> None:
        """Ask for the next piece, when all before the last number is there; not, if the piece
        before is not."""
        if self.others and self.wanted > last >= self.asked:
            self.asked = min(self.wanted, last + self.most)
            self.copies = {key: copy for key, copy in self.copies.items() if key[0] > last}
            layer.send(self.others, Fetch(last + 1, self.asked))

    def begin_again(self, layer: Layer, last: int, stable: int) -> None:
        """Do without what a replica wanted because it had left its view: it comes by itself."""
        self.wanted = max(stable, self.reached())
        self.asked = last
        self.ask_on(layer, last)

    def take(self, sender: int, packet: Fetched, last: int) -> bool:
        """Take the copy of one replica, and tell whether so many are equal to it."""
        number, messages = packet.number, packet.messages
        if not last < number <= self.asked:
            return False
        self.copies.setdefault((number, sender), messages)
        equal = [key for key, copy in self.copies.items() if key[0] == number and copy == messages]
        if len(equal) < self.enough:
            return False
        self.copies = {key: copy for key, copy in self.copies.items() if key[0] != number}
        return True

    # Who has it.

    def ask(self, process: int, first: int, last: int, view: int) -> None:
        """Take note of what a replica asks for, besides what it asked for before."""
        before = self.asks.get(process, (first, last, view))
        asked = (min(first, before[0]), max(last, before[1]), max(view, before[2]))
        self.asks[process] = asked

    def hear_from(self, process: int, view: int) -> None:
        """Take note that a replica takes part in a view, in which it is told what it lacks."""
        if process in self.asks and self.asks[process][2] <= view:
            del self.asks[process]

    def on_fetch(self, layer: Layer, sequence: Sequence, sender: int, packet: Fetch) -> None:
        self.ask(sender, packet.first, packet.last, FAR)
        self.answer(layer, sequence, sender)

    def on_view_change(self, layer: Layer, sequence: Sequence, packet: ViewChange) -> None:
        """Take it for a FETCH: who leaves a view may be the only one."""
        self.ask(packet.process, packet.last + 1, packet.last + self.most, packet.view)
        self.answer(layer, sequence, packet.process)

    def answer_all(self, layer: Layer, sequence: Sequence) -> None:
        for j in sorted(self.asks):
            self.answer(layer, sequence, j)

    def answer(self, layer: Layer, sequence: Sequence, process: int) -> None:
        """Tell a replica what is delivered here of what it asks for, and keep the rest in mind."""
        first, last, view = self.asks.pop(process)
        if sequence.is_aside(first):
            layer.recall(first, min(last, sequence.aside) + 1, self.most, process)
        for packet in sequence.piece(first, last):
            layer.send((process,), packet)
        if last > sequence.last:
            self.asks[process] = (max(first, sequence.last + 1), last, view)

    def on_recall(self, layer: Layer, asked: Recall, entries: list[tuple[int, Packet]]) -> None:
        for number, entry in entries:
            if isinstance(entry, Batch):
                layer.send((asked.about,), Fetched(number, entry.messages))
        if entries and entries[-1][0] + 1 < asked.last:
            layer.recall(entries[-1][0] + 1, asked.last, asked.most, asked.about)
