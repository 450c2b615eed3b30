"""Connecting a process to its server."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import ssl
from collections.abc import Generator
from os import PathLike
from pathlib import Path
from typing import Any, cast

from flexgroup.client.connection import ClientConnection
from flexgroup.client.errors import CannotConnect
from flexgroup.client.group import Link
from flexgroup.core.errors import UsageError
from flexgroup.wire.address import Address, parse_address
from flexgroup.wire.certificates import client_context
from flexgroup.wire.names import name_of

Tls = ssl.SSLContext | str | PathLike[str]
"""TLS is given as a context, or as a folder of certificates."""

PATIENCE = 30.0
"""How many seconds connecting, and each answer, may take unless the application says more."""


class Connecting:
    """The result of `connect`: await it, or use it in `async with`."""

    def __init__(
        self, address: Address, name: str, tls: ssl.SSLContext | None, timeout: float | None
    ) -> None:
        self._address = address
        self._name = name
        self._tls = tls
        self._timeout = timeout
        self._link: Link | None = None

    def __await__(self) -> Generator[Any, None, Link]:
        return self.link().__await__()

    async def __aenter__(self) -> Link:
        self._link = await self.link()
        return self._link

    async def __aexit__(self, *error: object) -> None:
        assert self._link is not None
        await self._link.close()

    async def link(self) -> Link:
        """Connect, and return the link when the server has welcomed this process."""
        connection = ClientConnection(str(self._address), self._name, self._timeout)
        try:
            async with asyncio.timeout(self._timeout):
                await self._open(connection)
                welcome = await connection.welcomed
        except TimeoutError:
            connection.abort()
            raise CannotConnect(
                f"no answer from {self._address} within {self._timeout:g} s; check that it is the"
                " address of a FlexGroup server, and whether it wants TLS"
            ) from None
        except OSError as error:
            if isinstance(error, CannotConnect) or connection.ended is not None:
                raise
            raise CannotConnect(self._why(error)) from None
        except BaseException:
            connection.abort()
            raise
        return Link(connection, self._name, welcome)

    def _why(self, error: OSError) -> str:
        cannot = f"cannot connect to {self._address}"
        if isinstance(error, ssl.SSLCertVerificationError):
            return (
                f"{cannot}: its certificate is not to be trusted ({error.verify_message}); use"
                " certificates of the authority that the server's are of"
            )
        if self._tls is not None and (isinstance(error, ssl.SSLError) or not str(error)):
            return (
                f"{cannot} with TLS ({str(error) or 'it hung up'}); does the server use TLS at all?"
            )
        return (
            f"{cannot} ({error.strerror or error}); start a server there with `flexgroup server`,"
            " or name another address"
        )

    async def _open(self, connection: ClientConnection) -> None:
        loop = asyncio.get_running_loop()
        address = self._address
        protocol = cast(asyncio.Protocol, connection)
        if address.path is not None:
            await loop.create_unix_connection(lambda: protocol, address.path)
        else:
            await loop.create_connection(
                lambda: protocol, address.host, address.port, ssl=self._tls
            )


def connect(
    address: str | None = None,
    *,
    name: str | None = None,
    tls: Tls | None = None,
    timeout: float | None = PATIENCE,
) -> Connecting:
    """Connect to a server, and stay connected within `async with`, or until `close`.

    address: `host:port` or `unix:PATH`; None stands for the environment's FLEXGROUP_SERVER, or
    else localhost:7400.
    name: the name of this process; None stands for one that no other process has.
    tls: an ssl.SSLContext, or a folder with a certificate for `name`, as `flexgroup certificates`
    makes it.
    timeout: how many seconds connecting, and then every request, may take; None sets no limit.
    """
    if name is None:
        name = f"{socket.gethostname()[:100]}-{os.getpid()}-{secrets.token_hex(3)}"
    where = parse_address(address)
    name_of("the name of a process", name)
    if timeout is not None and not timeout > 0:
        raise UsageError(f"timeout={timeout} is not possible; give seconds above 0, or None")
    return Connecting(where, name, _context_of(tls, name, where), timeout)


def _context_of(tls: Tls | None, name: str, address: Address) -> ssl.SSLContext | None:
    if tls is not None and address.path is not None:
        raise UsageError("a local socket needs no TLS, and the server has none there; leave it out")
    if tls is None or isinstance(tls, ssl.SSLContext):
        return tls
    return client_context(Path(tls), name)
