"""A liar: a process that runs unmodified stacks and stands between them and the network."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import NamedTuple

from flexgroup.core.errors import UsageError
from flexgroup.core.layer import (
    CancelTimer,
    Context,
    Deliver,
    Effect,
    Layer,
    Notice,
    Offer,
    Recall,
    Save,
    Send,
    SetTimer,
    Store,
    Stored,
)
from flexgroup.core.message import Message, Packet
from flexgroup.core.stack import Stack

MARK = "@"
"""What stands between the name that a layer within gave to a timer, and where that layer is."""


class Leaving(NamedTuple):
    """What a stack within has asked to send to others."""

    to: tuple[int, ...]
    packet: Packet


class Liar(Layer):
    """What all liars have in common: one stack, or two, and what these ask for.

    A stack's packets to its own process never leave the liar. Its storage is kept here, so a liar
    that crashes has forgotten everything. A stack that cannot take what it is told, since it knows
    one half of a story, does nothing about it.
    """

    __slots__ = ("first", "leaving", "second", "stored")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.first: Stack | None = None
        self.second: Stack | None = None
        self.stored: list[Stored] = []
        """What each layer of the first stack has in stable storage, then those of the second."""
        self.leaving: list[Leaving] = []
        """What the stacks have asked to send and the liar has not dealt with, the oldest first."""

    def take_in(self, *stacks: Stack) -> None:
        """Run these stacks, one or two, which have not been started."""
        self.first, self.second = (*stacks, None)[:2]
        self.stored = [Stored() for stack in stacks for _ in stack.layers]

    def deal(self) -> None:
        """Let what is leaving go, or do something else with it."""
        raise NotImplementedError

    def on_own_choice(self, name: str, chosen: int) -> None:
        """The world chose among options that the liar itself has offered."""

    def on_own_timer(self, name: str) -> None:
        """A timer of the liar itself ran out."""

    # The events that concern all stacks, or one of them.

    def on_start(self) -> None:
        for copy in range(len(self.stacks)):
            self.tell(copy, Stack.start)
        self.deal()

    def on_restart(self, stored: Stored) -> None:
        self.on_start()

    def on_notice(self, notice: Notice) -> None:
        for copy in range(len(self.stacks)):
            self.tell(copy, lambda stack: stack.notice(notice))
        self.deal()

    def on_cast(self, m: Message) -> None:
        self.tell(0, lambda stack: stack.cast(m))
        self.deal()

    def on_packet(self, sender: int, packet: Packet) -> None:
        self.tell(0, lambda stack: stack.receive(sender, packet))
        self.deal()

    def on_timer(self, name: str) -> None:
        if MARK not in name:
            self.on_own_timer(name)
            return
        inner, level, copy = place_of(name)
        self.tell(copy, lambda stack: stack.timer(level, inner))
        self.deal()

    def on_choice(self, name: str, chosen: int) -> None:
        if MARK not in name:
            self.on_own_choice(name, chosen)
            return
        inner, level, copy = place_of(name)
        self.tell(copy, lambda stack: stack.choose(level, inner, chosen))
        self.deal()

    # What the stacks within ask for.

    @property
    def stacks(self) -> list[Stack]:
        return [stack for stack in (self.first, self.second) if stack is not None]

    def tell(self, copy: int, event: Callable[[Stack], None]) -> None:
        """Let something happen to one of the stacks, and do what it asks for."""
        stack = self.stacks[copy]
        self._attempt(stack, event)
        while effects := stack.take_effects():
            own: list[Packet] = []
            for effect in effects:
                if isinstance(effect, Send):
                    others = tuple([target for target in effect.to if target != self.process])
                    if others:
                        self.leaving.append(Leaving(others, effect.packet))
                    if len(others) < len(effect.to):
                        own.append(effect.packet)
                else:
                    self._do(copy, stack, effect)
            for packet in own:
                self._attempt(stack, methodcaller("receive", self.process, packet))

    def _attempt(self, stack: Stack, event: Callable[[Stack], None]) -> None:
        try:
            event(stack)
        except UsageError:
            raise  # whoever asks for the run is told
        except Exception:  # whatever a handler raises that meets what it never should
            stack.drop_effects()

    def _do(self, copy: int, stack: Stack, effect: Effect) -> None:
        if isinstance(effect, Deliver):
            self.deliver(effect.message)
        elif isinstance(effect, SetTimer):
            self.set_timer(marked(effect.name, effect.level, copy), effect.ticks)
        elif isinstance(effect, CancelTimer):
            self.cancel_timer(marked(effect.name, effect.level, copy))
        elif isinstance(effect, Offer):
            self.offer(marked(effect.name, effect.level, copy), effect.options)
        elif isinstance(effect, Store):
            self._stored_by(copy, stack, effect.level).keep(effect)
            if isinstance(effect, Save) and effect.covers >= 0:
                stack.covered(effect.level, effect.covers)
        elif isinstance(effect, Recall):
            entries = self._stored_by(copy, stack, effect.level).recalled(effect)
            self._attempt(stack, lambda inner: inner.recall(effect, entries))
        elif isinstance(effect, Notice):
            self.pass_on(effect)

    def _stored_by(self, copy: int, stack: Stack, level: int) -> Stored:
        return self.stored[copy * len(stack.layers) + level]


def marked(name: str, level: int, copy: int) -> str:
    """The name by which the world knows a timer or an offer of a layer within."""
    return f"{name}{MARK}{level}" + (f"/{copy}" if copy else "")


def place_of(name: str) -> tuple[str, int, int]:
    """The name that the layer within gave, its level, and which stack it is in."""
    inner, _, place = name.rpartition(MARK)
    level, _, copy = place.partition("/")
    return inner, int(level), int(copy or 0)
