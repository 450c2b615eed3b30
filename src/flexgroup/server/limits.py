"""How much a server takes on: each figure bounds memory that others could otherwise fill."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    largest_message: int = 1 << 20
    """How many bytes one message may have."""
    window: int = 1024
    """Deliveries of a group under way to a client that it has not taken yet."""
    queue: int = 10_000
    """Deliveries that wait for a client at the server before senders are slowed down."""
    queue_bytes: int = 32 << 20
    slow_seconds: float = 5.0
    """How long a client's queue may stay full before the client is excluded."""
    under_way: int = 1024
    """Messages of this server, in one domain, that are not yet delivered everywhere."""
    under_way_bytes: int = 8 << 20
    unwritten_bytes: int = 64 << 20
    """Bytes of events that the process which writes the trace has not taken yet."""
    pack: int = 256
    """Messages of clients that share an envelope; 1: none do."""
    sends: int = 1024
    """Messages that a client may send before the server has taken the first of them."""
    requests: int = 1000
    """Requests of a client that wait for the one before to be carried out."""
    clients: int = 10_000
    groups_per_client: int = 1_000
    strangers: int = 1_000
    """Connections that have not said who they are; then the oldest of them is closed."""
    gone_seconds: float = 20.0
    """How long a client's machine may not answer, whether there is anything to send or not."""
    silent_seconds: float = 10.0
    """How long a new connection may take to say who it is."""
