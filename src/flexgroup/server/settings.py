"""What one is told when a server is started."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from flexgroup.membership.suspicion import Timings
from flexgroup.server.limits import Limits
from flexgroup.wire.address import DEFAULT_PORT
from flexgroup.worlds.network.faults import Faults


@dataclass(frozen=True)
class Settings:
    name: str
    """If it is empty: that of the machine, and the port."""
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    """0: any that is free."""
    unix: Path | None = None
    join: tuple[str, ...] = ()
    """Addresses of servers, of which one at least runs; none: this is the first."""
    trace: Path | None = None
    tls_server: ssl.SSLContext | None = None
    """For connections that come in; both sides show certificates."""
    tls_client: ssl.SSLContext | None = None
    """For connections to other servers."""
    limits: Limits = field(default_factory=Limits)
    timings: Timings = field(default_factory=Timings)
    faults: Faults = field(default_factory=Faults)
    rejoin: bool = True
    """If the others exclude this server, it joins them again as a new one."""
