"""Layers of a few lines, to test what hosts them."""

from __future__ import annotations

from typing import ClassVar

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import (
    Archive,
    CancelTimer,
    Context,
    Deliver,
    Effect,
    Layer,
    Notice,
    Offer,
    Save,
    Send,
    SetTimer,
    Stored,
    Suspect,
    Truncate,
    Trust,
    View,
    Write,
)
from flexgroup.core.message import Message, Packet, message_id, name_of
from flexgroup.core.stack import Stack


class Note(Packet):
    """A message and a number."""

    m: Message
    number: int


class Mark(Packet):
    """A number that is kept."""

    number: int


class Plain(Layer):
    """Sends everything to everybody concerned, and writes down what it is told, in order."""

    __slots__ = ("log",)
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Note,)
    STORED: ClassVar[tuple[type[Packet], ...]] = (Mark,)
    KEEPS: ClassVar[Guarantees] = frozenset(Guarantee)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.log: list[str] = []

    def on_start(self) -> None:
        self.log.append("start")

    def on_restart(self, stored: Stored) -> None:
        self.log.append(f"restart with {stored.saved!r}")

    def on_cast(self, m: Message) -> None:
        self.log.append(f"cast {name_of(m.id)}")
        self.send(m.destinations, Note(m, len(self.log)))

    def on_packet(self, sender: int, packet: Packet) -> None:
        if not isinstance(packet, Note):
            raise self.refuse(sender, packet)
        self.log.append(f"packet {name_of(packet.m.id)} from {sender}")
        self.deliver(packet.m)

    def on_timer(self, name: str) -> None:
        self.log.append(f"timer {name}")

    def on_choice(self, name: str, chosen: int) -> None:
        self.log.append(f"choice {name} {chosen}")

    def on_notice(self, notice: Notice) -> None:
        self.log.append(f"notice {told(notice)}")
        self.pass_on(notice)


def message(origin: int, seq: int, *destinations: int, payload: bytes = b"") -> Message:
    return Message(message_id(origin, seq), destinations, payload)


def plain_stack(levels: int, process: int = 0) -> Stack:
    return Stack([Plain(Context(process, 3)) for _ in range(levels)])


def log_of(stack: Stack, level: int) -> list[str]:
    layer = stack.layers[level]
    assert isinstance(layer, Plain)
    return layer.log


def told(effect: Effect) -> str:
    """An effect in words."""
    if isinstance(effect, Send):
        return f"send {type(effect.packet).__name__} to {effect.to}"
    if isinstance(effect, Deliver):
        return f"deliver {name_of(effect.message.id)}"
    if isinstance(effect, SetTimer):
        return f"set timer {effect.name} of level {effect.level} to {effect.ticks}"
    if isinstance(effect, CancelTimer):
        return f"cancel timer {effect.name} of level {effect.level}"
    if isinstance(effect, Offer):
        return f"offer {effect.name} of level {effect.level}: {effect.options}"
    if isinstance(effect, Save):
        return f"save {effect.packet!r} of level {effect.level}"
    if isinstance(effect, Write):
        return f"write {effect.packet!r} as {effect.number}"
    if isinstance(effect, Archive):
        return f"archive up to {effect.first}"
    if isinstance(effect, Truncate):
        return f"truncate to {effect.first}"
    if isinstance(effect, Suspect):
        return f"suspect {effect.process}"
    if isinstance(effect, Trust):
        return f"trust {effect.process}"
    if isinstance(effect, View):
        return f"view {effect.number}: {effect.members}"
    raise AssertionError(type(effect))


def asked(stack: Stack) -> list[str]:
    """What the stack asks the world for, in words."""
    return [told(effect) for effect in stack.take_effects()]


def sent(stack: Stack) -> Packet:
    """The one packet that the stack asks the world to send."""
    (effect,) = stack.take_effects()
    assert isinstance(effect, Send)
    return effect.packet
