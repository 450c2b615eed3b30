"""How clients broadcast with protocols in which only the members take part."""

from __future__ import annotations

from typing import final

from flexgroup.core.message import Message, Packet, origin_of


@final
class Request(Packet):
    """A client, which takes no part in the protocol, asks a destination to broadcast m."""

    m: Message

    def is_of(self, client: int, size: int) -> bool:
        """Tell whether its sender is a client and asks for a message of its own."""
        return client >= size and client == origin_of(self.m.id)
