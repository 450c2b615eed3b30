"""Twins: two unmodified copies of a process under one identity (Bano and others, Twins, 2020).

Whatever comes for the process reaches one of the two, as the world chooses, and both send as it.
What the copies do together ranges over most attacks that are known of Byzantine fault tolerant
protocols, though each of them only does as it should: they vote twice, tell different receivers
different things, and forget what they have promised.

Differs: a copy's packets to its own process reach itself, and not the other one. As long as
nothing has happened to either of them alone they are the same, and the world has no choice.
"""

from __future__ import annotations

from flexgroup.core.layer import Context
from flexgroup.core.message import Message, Packet
from flexgroup.core.stack import Stack
from flexgroup.liars.liar import Liar

COPY = "copy"
"""What the world is offered to choose: which of the two."""


class Twins(Liar):
    __slots__ = ("parted", "waiting")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.waiting: list[tuple[int, Message | Packet]] = []
        """What has come, and from whom, and is yet to reach one of the two: the oldest first. A
        message is one that the application multicasts."""
        self.parted = False
        """Something has happened to one of them alone."""

    def on_cast(self, m: Message) -> None:
        self._come(self.process, m)

    def on_packet(self, sender: int, packet: Packet) -> None:
        self._come(sender, packet)

    def on_timer(self, name: str) -> None:
        self.parted = True
        super().on_timer(name)

    def _come(self, sender: int, what: Message | Packet) -> None:
        self.waiting.append((sender, what))
        if self.parted:
            self.offer(COPY, 2)
        else:
            self.parted = True
            self.on_own_choice(COPY, 0)

    def on_own_choice(self, name: str, chosen: int) -> None:
        sender, what = self.waiting.pop(0)

        def reach(stack: Stack) -> None:
            if isinstance(what, Message):
                stack.cast(what)
            else:
                stack.receive(sender, what)

        self.tell(chosen, reach)
        self.deal()

    def deal(self) -> None:
        for leaving in self.leaving:
            self.send(leaving.to, leaving.packet)
        self.leaving = []
