"""Noticing that the machine at the other end of a connection is gone.

A process that ends closes its connections. A machine that loses its power or its network does
not, and while nothing is sent to it nobody would ever know.
"""

from __future__ import annotations

import asyncio
import socket


def keep_alive(transport: asyncio.Transport, seconds: float) -> None:
    """Have the system end the connection when the other end has not answered for that long."""
    end = transport.get_extra_info("socket")
    if end is None or end.family not in (socket.AF_INET, socket.AF_INET6):
        return
    end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", max(1, round(seconds / 2))),
        ("TCP_KEEPINTVL", max(1, round(seconds / 8))),
        ("TCP_KEEPCNT", 4),
        ("TCP_USER_TIMEOUT", round(1000 * seconds)),
    ):
        option = getattr(socket, name, None)  # not every system has them all
        if option is not None:
            end.setsockopt(socket.IPPROTO_TCP, option, value)
