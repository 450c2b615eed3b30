"""Lies: packets that differ from a true one in one field, as far as the codec allows.

A packet that carries the seal of the liar itself gets another one, so that the lie is sealed as the
truth was. That is so for a seal on the packet as it is with the field of the seal empty, and for
one on another packet in it. A seal of anybody else is quoted as it is, and does not fit any more.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from flexgroup.core.fields import (
    ALL_BYTES,
    BYTES,
    ID,
    INT,
    INTS,
    MESSAGE,
    MESSAGES,
    PACKET,
    PACKETS,
    STAMP,
)
from flexgroup.core.message import (
    Message,
    MessageId,
    Packet,
    clock_of,
    message_id,
    origin_of,
    process_of,
    seq_of,
    stamp,
)
from flexgroup.core.seals import Notary

UNHEARD_OF = 100
"""How much later than a message one is that nobody has multicast."""


LevelAbove = Callable[[int, Packet], int]


def the_next(level: int, packet: Packet) -> int:
    """Where each layer has its packets carried by the one below it."""
    return level + 1


class Lies:
    """Tells what a process could say instead of the truth."""

    def __init__(
        self, process: int, notary: Notary | None, level_above: LevelAbove = the_next
    ) -> None:
        self._process = process
        self._notary = notary
        self._level_above = level_above
        """Which layer a packet is of that the one at this level delivers."""

    def about(self, packet: Packet, layer: int = 0) -> list[Packet]:
        """The lies about a packet of this layer of the stack, always in the same order."""
        found: list[Packet] = []
        for name, kind in packet.FIELDS:
            if kind == BYTES and self._seals(packet, name, layer):
                continue
            truth = getattr(packet, name)
            for value in self._instead(kind, truth, layer):
                if value != truth:
                    lie = with_field(packet, name, value)
                    found.append(self._sealed(packet, lie, layer))
        return found

    def _instead(self, kind: int, value: Any, layer: int) -> list[Any]:
        if kind == INT:
            return [value + 1]
        if kind == ID:
            return [unheard_of(value)]
        if kind == STAMP:
            return [stamp(clock_of(value) + 1, process_of(value))]
        if kind == INTS and value:
            return [(value[0] + 1, *value[1:])]
        if kind == MESSAGE:
            return self._about_message(value, layer)
        if kind == MESSAGES and value:
            others = [(m, *value[1:]) for m in self._about_message(value[0], layer)]
            return others + ([value[::-1]] if len(value) > 1 else [])
        if kind == BYTES and value:
            return [bytes([value[0] ^ 1]) + value[1:]]
        if kind == PACKET:
            return self.about(value, layer)
        if kind in (ALL_BYTES, PACKETS) and value:
            return [value[:-1]]
        return []

    def _about_message(self, m: Message, layer: int) -> list[Message]:
        if isinstance(m.payload, bytes):
            return [Message(m.id, m.destinations, m.payload + b"!")]
        payloads = self.about(m.payload, self._level_above(layer, m.payload))
        return [Message(m.id, m.destinations, payload) for payload in payloads]

    # Seals.

    def _seals(self, packet: Packet, name: str, layer: int) -> bool:
        """Whether this field is the liar's own seal."""
        return self._sealed_by(packet, name, layer) is not None

    def _sealed_by(
        self, packet: Packet, name: str, layer: int
    ) -> Callable[[Packet], Packet] | None:
        """What of a packet the liar itself has sealed, if this field is its seal."""
        seal = getattr(packet, name)
        if self._notary is None or not seal:
            return None
        parts: list[Callable[[Packet], Packet]] = [lambda whole: with_field(whole, name, b"")]
        for other, kind in packet.FIELDS:
            if kind == PACKET:
                parts.append(attrgetter(other))
        for part in parts:
            if self._notary.is_sealed(self._process, layer, part(packet), seal):
                return part
        return None

    def _sealed(self, truth: Packet, lie: Packet, layer: int) -> Packet:
        """The lie, sealed wherever the liar has sealed the truth."""
        if self._notary is None:
            return lie
        for name, kind in truth.FIELDS:
            part = self._sealed_by(truth, name, layer) if kind == BYTES else None
            if part is not None:
                lie = with_field(lie, name, self._notary.seal(layer, part(lie)))
        return lie


def with_field(packet: Packet, name: str, value: object) -> Packet:
    """A packet that differs in this field."""
    values = [value if field == name else getattr(packet, field) for field, _ in packet.FIELDS]
    return type(packet)(*values)


def unheard_of(identity: MessageId) -> MessageId:
    """A message of the same origin that it has not multicast, and will not for long."""
    return message_id(origin_of(identity), seq_of(identity) + UNHEARD_OF)


def message_in(packet: Packet) -> Message | None:
    """The message of an application in a packet, if there is any."""
    for name, _ in packet.FIELDS:
        value = getattr(packet, name)
        for item in value if isinstance(value, tuple) else (value,):
            found = item if isinstance(item, Message) else None
            if found is not None and isinstance(found.payload, Packet):
                found = message_in(found.payload)
            elif isinstance(item, Packet):
                found = message_in(item)
            if found is not None:
                return found
    return None
