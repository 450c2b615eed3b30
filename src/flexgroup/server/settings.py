"""What one is told when a server is started."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from flexgroup.core.errors import UsageError
from flexgroup.server.limits import Limits
from flexgroup.server.membership import Timings
from flexgroup.worlds.network.faults import Faults

DEFAULT_PORT = 7400


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


def parse_address(text: str) -> tuple[str, int]:
    """`host:port`, or a host alone for the usual port; an IPv6 address in brackets."""
    host, colon, port = text.rpartition(":")
    if not colon or (text.startswith("[") and text.endswith("]")):
        host, port = text, str(DEFAULT_PORT)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise UsageError(
            f"'{text}' is not an address; write host:port, as localhost:{DEFAULT_PORT}"
        )
    return host, int(port)
