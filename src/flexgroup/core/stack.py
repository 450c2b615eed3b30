"""A stack: the layers of one process, and the passage of messages between them.

The first layer is the lowest; it speaks to the network. What a layer sends becomes a
message that the layer below is asked to multicast, with an identity of its own at that
level; what a layer delivers is unwrapped and handed to the layer above as a packet.
So a layer sees only its own packets, and any layer fits on any other whose
guarantees suffice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from flexgroup.core.errors import UsageError
from flexgroup.core.guarantees import Guarantees, names
from flexgroup.core.layer import (
    Deliver,
    Effect,
    Layer,
    Notice,
    Send,
    Stored,
)
from flexgroup.core.message import Message, Packet, message_id, origin_of


def guarantees_above(layers: list[type[Layer]], below: Guarantees) -> Guarantees:
    """What the stack guarantees to the application over channels that give `below`.

    Raises UsageError, naming the missing guarantee, when a layer's needs are not met.
    """
    given = below
    beneath = "the network"
    for layer in layers:
        missing = layer.NEEDS - given
        if missing:
            wanted = sorted(missing, key=lambda guarantee: guarantee.value)
            raise UsageError(
                f"{layer.__name__} needs {names(layer.NEEDS)}, but {beneath} gives only "
                f"{names(given)}: missing {names(missing)} ({wanted[0].meaning}); "
                f"put a layer that gives it below {layer.__name__}, or change the network"
            )
        given = layer.GIVES | (given & layer.KEEPS)
        beneath = layer.__name__
    return given


@final
class Stack:
    """The layers of one process. A world tells it events and takes the effects."""

    __slots__ = ("_effects", "_sent", "_single", "layers", "process")

    def __init__(self, layers: list[Layer]) -> None:
        if not layers:
            raise UsageError("a stack needs at least one layer")
        self.layers = layers
        self.process = layers[0].process
        self._single = layers[0] if len(layers) == 1 else None
        self._effects: list[Effect] = []
        self._sent = [0] * len(layers)
        for level, layer in enumerate(layers):
            layer.level = level

    # What a world tells the stack.

    def start(self) -> None:
        for level in range(len(self.layers)):
            self.layers[level].on_start()
            self._settle(level)

    def restart(self, saved: list[Stored]) -> None:
        for level in range(len(self.layers)):
            self.layers[level].on_restart(saved[level])
            self._settle(level)

    def cast(self, m: Message) -> None:
        top = len(self.layers) - 1
        self.layers[top].on_cast(m)
        self._settle(top)

    def receive(self, sender: int, packet: Packet) -> None:
        single = self._single
        if single is not None:
            single.on_packet(sender, packet)
            return
        self.layers[0].on_packet(sender, packet)
        self._settle(0)

    def timer(self, level: int, name: str) -> None:
        self.layers[level].on_timer(name)
        self._settle(level)

    def choose(self, level: int, name: str, chosen: int) -> None:
        self.layers[level].on_choice(name, chosen)
        self._settle(level)

    def notice(self, notice: Notice) -> None:
        self.layers[0].on_notice(notice)
        self._settle(0)

    def take_effects(self) -> list[Effect]:
        """What the world is to do now, in order; the stack forgets it."""
        single = self._single
        if single is not None:
            taken = single.effects
            if taken:
                single.effects = []
            return taken
        taken = self._effects
        if taken:
            self._effects = []
        return taken

    def sent_counts(self) -> list[int]:
        """How many messages each layer has sent through the one below it."""
        return self._sent

    def take_over(self, other: Stack) -> None:
        """Continue where another stack of the same layers stands."""
        self._sent = list(other._sent)
        self._effects = list(other._effects)

    def _settle(self, level: int) -> None:
        """Pass effects between layers, oldest first, until only the world's are left."""
        if self._single is not None:
            return
        # What a layer asked for at one time, and its level: the queue grows while it is handled.
        waiting: list[list[Effect]] = []
        levels: list[int] = []
        self._collect(level, waiting, levels)
        top = len(self.layers) - 1
        for place, effects in enumerate(waiting):
            at = levels[place]
            for effect in effects:
                if isinstance(effect, Send) and at > 0:
                    sent = self._sent[at]
                    self._sent[at] = sent + 1
                    m = Message(message_id(self.process, sent), effect.to, effect.packet)
                    self.layers[at - 1].on_cast(m)
                    self._collect(at - 1, waiting, levels)
                elif isinstance(effect, Deliver) and at < top:
                    m = effect.message
                    assert isinstance(m.payload, Packet)
                    self.layers[at + 1].on_packet(origin_of(m.id), m.payload)
                    self._collect(at + 1, waiting, levels)
                elif isinstance(effect, Notice) and at < top:
                    self.layers[at + 1].on_notice(effect)
                    self._collect(at + 1, waiting, levels)
                else:
                    self._effects.append(effect)

    def _collect(self, level: int, waiting: list[list[Effect]], levels: list[int]) -> None:
        layer = self.layers[level]
        effects = layer.effects
        if effects:
            layer.effects = []
            waiting.append(effects)
            levels.append(level)


BuildStack = Callable[[int], Stack]
"""Builds the stack of a process, at the start and after a crash."""
