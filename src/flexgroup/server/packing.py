"""Packs: messages of clients to the same groups that travel in one envelope."""

from __future__ import annotations

from typing import final

from flexgroup.server.contents import packed
from flexgroup.server.deployment import HostedDomain
from flexgroup.server.session import Session

PACK_BYTES = 64 << 10


@final
class Pack:
    """What has come to be sent to these groups since the event loop was last at leisure."""

    def __init__(self, domain: HostedDomain, groups: tuple[int, ...]) -> None:
        self.domain = domain
        self.groups = groups
        self.messages: list[tuple[str, bytes]] = []
        self.sessions: list[Session] = []
        """Whose they are."""
        self.size = 0

    def add(self, sender: str, body: bytes) -> None:
        self.messages.append((sender, body))
        self.size += len(body)

    def contents(self) -> bytes:
        """The messages, encoded once and for all."""
        return packed(self.messages)
