"""Where a server is: `host:port`, or `unix:PATH` on the same machine."""

from __future__ import annotations

import os
from dataclasses import dataclass

from flexgroup.core.errors import UsageError

DEFAULT_PORT = 7400
VARIABLE = "FLEXGROUP_SERVER"
"""The environment variable that names the server of a machine's clients."""

HIGHEST_PORT = (1 << 16) - 1


@dataclass(frozen=True)
class Address:
    """An address is either a path, or a host and a port."""

    host: str
    port: int
    path: str | None = None

    def __str__(self) -> str:
        if self.path is not None:
            return f"unix:{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(text: str | None) -> Address:
    """Return the address that a client connects to.

    None stands for the server that the environment names, or else for the usual port of this
    machine.
    """
    if text is None:
        text = os.environ.get(VARIABLE) or f"localhost:{DEFAULT_PORT}"
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        if not path:
            raise UsageError("'unix:' names no socket; write unix:PATH, as the server was told")
        return Address("", 0, path)
    address = _host_and_port(text)
    if address is None or address.port == 0:
        raise UsageError(f"'{text}' is no address; write host:port or unix:PATH")
    return address


def parse_server_address(text: str) -> Address:
    """Return the address at which a server listens, or at which other servers reach it.

    Port 0 stands for any free port.
    """
    address = _host_and_port(text)
    if address is None:
        raise UsageError(
            f"'{text}' is not an address; write host:port, as localhost:{DEFAULT_PORT}"
        )
    return address


def _host_and_port(text: str) -> Address | None:
    """Read a host, with or without a port; an IPv6 address stands in brackets."""
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(DEFAULT_PORT)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise UsageError(
            f"'{text}': write the brackets of an IPv6 address, as in [::1]:{DEFAULT_PORT}"
        )
    if not host or not port.isdecimal() or int(port) > HIGHEST_PORT:
        return None
    return Address(host, int(port))
