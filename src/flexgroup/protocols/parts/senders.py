"""Who may send what, where only members take part: clients, which ask, and other members."""

from __future__ import annotations

from typing import final

from flexgroup.core.layer import Layer
from flexgroup.core.message import Message, Packet, origin_of


@final
class Request(Packet):
    """A client, which takes no part in an atomic broadcast, asks a destination to broadcast m."""

    m: Message


@final
class Enter(Packet):
    """A client, which is not in the cube, asks a destination to broadcast m."""

    m: Message


def is_of_client(layer: Layer, sender: int, m: Message) -> bool:
    """Tell whether a client sent it and asks for a message of its own, which is for me, too."""
    return sender >= layer.size and sender == origin_of(m.id) and layer.is_for_me(m)


def is_of_members(layer: Layer, sender: int, m: Message) -> bool:
    """Tell whether another member sent it, and all destinations of m are members."""
    to = m.destinations
    return sender < layer.size and sender != layer.process and len(to) > 0 and to[-1] < layer.size
