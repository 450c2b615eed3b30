"""Where a server is: `host:port`, or `unix:PATH` on the same machine."""

from __future__ import annotations

import os
from dataclasses import dataclass

from flexgroup.core.errors import UsageError

DEFAULT_PORT = 7400
VARIABLE = "FLEXGROUP_SERVER"


@dataclass(frozen=True)
class Address:
    """Either a path, or a host and a port."""

    host: str
    port: int
    path: str | None = None

    def __str__(self) -> str:
        if self.path is not None:
            return f"unix:{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(text: str | None) -> Address:
    """Of None: the one in the environment, or this machine's."""
    if text is None:
        text = os.environ.get(VARIABLE) or f"localhost:{DEFAULT_PORT}"
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        if not path:
            raise UsageError("'unix:' names no socket; write unix:PATH, as the server was told")
        return Address("", 0, path)
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(DEFAULT_PORT)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise UsageError(f"'{text}': write the brackets of an IPv6 address, as in [::1]:7400")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise UsageError(f"'{text}' is no address; write host:port or unix:PATH")
    return Address(host, int(port))
