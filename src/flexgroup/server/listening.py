"""Where a server listens: one port for everybody, and a local socket for clients if wanted."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from flexgroup.core.errors import UsageError
from flexgroup.server.settings import Settings
from flexgroup.wire.address import Address


async def listeners(
    settings: Settings, protocol: Callable[[], asyncio.Protocol]
) -> list[asyncio.Server]:
    """The first is that of the port."""
    loop = asyncio.get_running_loop()
    where = str(Address(settings.host, settings.port))
    found: list[asyncio.Server] = []
    try:
        found.append(
            await loop.create_server(
                protocol,
                settings.host,
                settings.port,
                ssl=settings.tls_server,
                ssl_handshake_timeout=settings.limits.silent_seconds
                if settings.tls_server
                else None,
            )
        )
        if settings.unix is not None:
            where = f"unix:{settings.unix}"
            found.append(await loop.create_unix_server(protocol, str(settings.unix)))
    except OSError as error:
        for listener in found:
            listener.close()
        # Event loops put the address into the text once more.
        number = error.errno or 0  # below 0: of the resolver
        reason = os.strerror(number) if number > 0 else error.strerror or error
        raise UsageError(
            f"cannot listen on {where}: {reason}; choose another address or port"
        ) from None
    return found
