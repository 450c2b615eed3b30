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

from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.guarantees import NOTHING, Guarantee, Guarantees, names
from flexgroup.core.layer import (
    Deliver,
    Effect,
    Layer,
    Notice,
    Recall,
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


def unordered_way(layers: list[type[Layer]]) -> tuple[int, frozenset[type[Packet]]]:
    """The level that carries packets of the top layer that need no order, and their types.

    It is the lowest one that lets nothing get lost, because it gives that or because the layer
    above it would not be there otherwise; there may be no such packets. A type that a layer in
    between has as well goes the way of all others.
    """
    top = len(layers) - 1
    unordered = frozenset(layers[top].UNORDERED)
    given = NOTHING
    for level in range(top if unordered else 0):
        given = layers[level].GIVES | (given & layers[level].KEEPS)
        if Guarantee.RELIABLE in given | layers[level + 1].NEEDS:
            return level, unordered.difference(*[one.PACKETS for one in layers[level + 1 : top]])
    return 0, unordered.difference(*[one.PACKETS for one in layers[1:top]])


def packets_by_level(layers: list[type[Layer]]) -> list[tuple[type[Packet], ...]]:
    """The types of packets at each level of the wire: messages of one carry packets of the next.

    A level is a layer of the stack, or what the layer below it hosts.
    """
    carrier, unordered = unordered_way(layers)
    top = len(layers) - 1
    levels: list[tuple[type[Packet], ...]] = []
    for place, layer in enumerate(layers):
        passing_by = [packet for packet in layers[top].UNORDERED if packet in unordered]
        is_passed = place == carrier + 1 and place != top
        levels.append((*layer.PACKETS, *passing_by) if is_passed else layer.PACKETS)
        if layer.HOSTED:
            levels.append(layer.HOSTED)
    return levels


@final
class Stack:
    """The layers of one process. A world tells it events and takes the effects."""

    __slots__ = (
        "_carrier",
        "_effects",
        "_passes_by",
        "_sent",
        "_single",
        "_unordered",
        "layers",
        "process",
    )

    def __init__(self, layers: list[Layer]) -> None:
        if not layers:
            raise UsageError("a stack needs at least one layer")
        self.layers = layers
        self.process = layers[0].process
        self._single = layers[0] if len(layers) == 1 else None
        self._effects: list[Effect] = []
        self._sent = [0] * len(layers)
        self._carrier = 0
        self._unordered: frozenset[type[Packet]] = frozenset()
        """What the top layer sends and gets through this level, past those between."""
        if layers[-1].UNORDERED:
            self._carrier, self._unordered = unordered_way([type(layer) for layer in layers])
        self._passes_by = bool(self._unordered)
        for level, layer in enumerate(layers):
            layer.level = level
            layer.is_top = level == len(layers) - 1

    # What a world tells the stack.

    def start(self) -> None:
        for level in range(len(self.layers)):
            self.layers[level].on_start()
            self._settle(level)

    def restart(self, stored: list[Stored], first: int) -> None:
        """Start again; what layers send is numbered from here on, as it is news to those below."""
        self._sent = [first] * len(self.layers)
        # What a layer asks for may reach others: all of them are restored before.
        for level in range(len(self.layers)):
            self.layers[level].on_restart(stored[level])
        for level in range(len(self.layers)):
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

    def covered(self, level: int, count: int) -> None:
        """What this layer saved stands for so many messages of the one below."""
        if level > 0:
            self.layers[level - 1].on_covered(count)
            self._settle(level - 1)

    def recall(self, asked: Recall, entries: list[tuple[int, Packet]]) -> None:
        """What the layer asked for, of what it set aside."""
        self.layers[asked.level].on_recall(asked, entries)
        self._settle(asked.level)

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

    def drop_effects(self) -> None:
        """Forget what layers asked for in an event that they did not come to the end of."""
        self._effects = []
        for layer in self.layers:
            layer.effects = []

    def held_back(self) -> list[Message]:
        """What the stack would deliver next, in this order, if all had it."""
        return self.layers[-1].held_back()

    def sent_counts(self) -> list[int]:
        """How many messages each layer has sent through the one below it."""
        return self._sent

    def level_above(self, level: int, packet: Packet) -> int:
        """Which layer takes a packet that the one at this level delivers: the next, unless it is
        one of those of the top layer that pass by what is in between."""
        if self._passes_by and type(packet) in self._unordered:
            return len(self.layers) - 1
        return level + 1

    def take_over(self, other: Stack) -> None:
        """Continue where another stack of the same layers stands."""
        self._sent = list(other._sent)
        self._effects = list(other._effects)

    def _settle(self, level: int) -> None:
        """Pass effects between layers, oldest first, until only the world's are left."""
        if self._single is not None or not self.layers[level].effects:
            return
        # What a layer asked for at one time, and its level: the queue grows while it is handled.
        waiting: list[list[Effect]] = []
        levels: list[int] = []
        self._collect(level, waiting, levels)
        top = len(self.layers) - 1
        passes_by = self._passes_by
        for place, effects in enumerate(waiting):
            at = levels[place]
            for effect in effects:
                if isinstance(effect, Send) and at > 0:
                    below = at - 1
                    if passes_by and at == top and type(effect.packet) in self._unordered:
                        below = self._carrier
                    sent = self._sent[below + 1]
                    self._sent[below + 1] = sent + 1
                    m = Message(message_id(self.process, sent), effect.to, effect.packet)
                    self.layers[below].on_cast(m)
                    self._collect(below, waiting, levels)
                elif isinstance(effect, Deliver) and at < top:
                    m = effect.message
                    assert isinstance(m.payload, Packet)
                    above = self.level_above(at, m.payload)
                    try:
                        self.layers[above].on_packet(origin_of(m.id), m.payload)
                    except PeerError:
                        if not self.layers[above].AMONG_LIARS:
                            raise
                    self._collect(above, waiting, levels)
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
