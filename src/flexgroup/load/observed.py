"""A running server, looked at again and again: what it tells of itself, and how much it does."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flexgroup.client.connecting import connect
from flexgroup.client.group import Link
from flexgroup.core.errors import FlexGroupError
from flexgroup.wire.certificates import SERVER

PATIENCE = 2.0
"""How many seconds a server may take to answer."""


@dataclass(frozen=True)
class Look:
    """What a server told when it was looked at."""

    told: dict[str, Any]
    """The document of its inspection."""
    seconds: float
    """How long the answer took."""
    multicasts: float
    """How many there were in a second, since the look before; 0 at the first."""
    deliveries: float

    @property
    def members(self) -> int:
        """How many members all groups have, at all servers."""
        return sum(len(group["members"]) for group in self.told["groups"])

    @property
    def clients(self) -> int:
        """How many others are connected."""
        return len(self.told["clients"]) - 1

    @property
    def queued(self) -> int:
        return sum(group["queued"] for client in self.told["clients"] for group in client["groups"])


class ObservedServer:
    """Keeps a link to the server at an address, and looks at it whenever it is told to."""

    def __init__(self, address: str, tls: Path | None, name: str) -> None:
        self.address = address
        self._tls = tls
        self._name = SERVER if tls is not None and not name else name
        """The name of whoever looks; with TLS, of its certificate, which servers have, too."""
        self._link: Link | None = None
        self._before: dict[str, float] = {}
        self._at = 0.0

    async def link(self) -> Link:
        if self._link is None:
            self._link = await connect(
                self.address, name=self._name or None, tls=self._tls, timeout=PATIENCE
            )
        return self._link

    async def look(self) -> Look | None:
        """Return what it tells, or None if it does not answer."""
        begun = time.monotonic()
        try:
            told = await (await self.link()).inspect()
        except FlexGroupError:
            self._link = None
            self._at = 0.0
            return None
        now = time.monotonic()
        since, before = now - self._at, self._before
        self._before = {name: float(told["totals"][name]) for name in ("multicasts", "deliveries")}
        rates = {
            name: max(0.0, value - before[name]) / since if self._at else 0.0
            for name, value in self._before.items()
        }
        self._at = now
        return Look(told, now - begun, **rates)

    async def close(self) -> None:
        if self._link is not None:
            with suppress(FlexGroupError):
                await self._link.close()
