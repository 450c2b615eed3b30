"""Packets as scripts show them: their type, and their fields in the words of people."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from flexgroup.core.fields import (
    ALL_BYTES,
    BYTES,
    ID,
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
    name_of,
    process_of,
)

MOST_DIGITS = 8
"""How many digits of bytes are shown: enough to tell one seal or digest from another."""

Naming = Callable[[MessageId], str]
"""What messages are called."""


def naming(names: Mapping[MessageId, str]) -> Naming:
    """Call messages by these names, and by origin and number where they have none."""
    return lambda identity: names.get(identity) or name_of(identity)


def packet_in_words(packet: Packet, called: Naming) -> str:
    words = [type(packet).__name__]
    for name, kind in packet.FIELDS:
        value = getattr(packet, name)
        if kind == MESSAGE:
            words.append(_message_in_words(value, called))
        elif kind == MESSAGES:
            words.append(f"{name}={','.join([_message_in_words(m, called) for m in value]) or '-'}")
        elif kind == ID:
            words.append(called(value))
        elif kind == STAMP:
            words.append(f"{name}=({clock_of(value)},{process_of(value)})")
        elif kind == INTS:
            words.append(f"{name}={','.join(map(str, value)) or '-'}")
        elif kind == BYTES:
            words.append(f"{name}={_bytes_in_words(value)}")
        elif kind == ALL_BYTES:
            words.append(f"{name}={','.join(map(_bytes_in_words, value)) or '-'}")
        elif kind == PACKET:
            words.append(f"{name}=[{packet_in_words(value, called)}]")
        elif kind == PACKETS:
            quoted = ",".join([f"[{packet_in_words(other, called)}]" for other in value])
            words.append(f"{name}={quoted or '-'}")
        else:
            words.append(f"{name}={value}")
    return " ".join(words)


def _message_in_words(m: Message, called: Naming) -> str:
    inner = m.payload
    return f"[{packet_in_words(inner, called)}]" if isinstance(inner, Packet) else called(m.id)


def _bytes_in_words(data: bytes) -> str:
    digits = data.hex()
    return digits if len(digits) <= MOST_DIGITS else f"{digits[:MOST_DIGITS]}.."
