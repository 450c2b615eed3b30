"""What a server is told when it is started, and who it is then."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from flexgroup.membership.suspicion import Timings
from flexgroup.server.limits import Limits
from flexgroup.wire.address import DEFAULT_PORT
from flexgroup.wire.certificates import check_identity
from flexgroup.worlds.network.faults import Faults


@dataclass(frozen=True)
class Settings:
    name: str
    """If it is empty, the server is named after its machine and port."""
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    """The port to listen on; if it is 0, the system chooses one that is free."""
    unix: Path | None = None
    join: tuple[str, ...] = ()
    """Addresses of servers, of which one at least runs; none: this is the first."""
    trace: Path | None = None
    tls_server: ssl.SSLContext | None = None
    """Used for connections that come in; both sides show certificates."""
    tls_client: ssl.SSLContext | None = None
    """Used for connections to other servers."""
    limits: Limits = field(default_factory=Limits)
    timings: Timings = field(default_factory=Timings)
    faults: Faults = field(default_factory=Faults)
    rejoin: bool = True
    """If the others exclude this server, it joins them again as a new one."""

    def check_certificate(self, transport: asyncio.Transport, client: str | None) -> None:
        """Raise PeerError unless the other end shows the certificate of this client, or, with None,
        that of a server. Without TLS, anybody is believed."""
        if self.tls_server is not None:
            check_identity(transport, client)


@dataclass
class ServerIdentity:
    """Who a server is, as far as that is known."""

    name: str
    address: str = ""
    """Where other servers reach it; known when it listens."""
    cluster: str = ""
    """The first server of a cluster draws this name; others learn it when they join."""
