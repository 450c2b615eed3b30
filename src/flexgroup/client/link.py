"""The link of a process to its server: how to connect, and what concerns several groups."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import ssl
from collections.abc import Generator, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, Self, TypeVar, overload

import msgspec

from flexgroup.client.connection import Connection, protocol_of
from flexgroup.client.errors import (
    BadStack,
    CannotConnect,
    GroupExists,
    MixedStacks,
    NoSuchGroup,
)
from flexgroup.client.group import Group, name_of
from flexgroup.client.values import Codec
from flexgroup.core.errors import UsageError
from flexgroup.wire import requests
from flexgroup.wire.address import Address, parse_address
from flexgroup.wire.certificates import client_context

T = TypeVar("T")

Tls = ssl.SSLContext | str | PathLike[str]
"""TLS is given as a context, or as a folder of certificates."""

PATIENCE = 30.0
"""How many seconds connecting, and each answer, may take unless the application says more."""

CREATIONS = 10
"""How often to try while others create and destroy the same group."""


class Link:
    """A connection to a server, shared by all groups of this process."""

    def __init__(self, connection: Connection, name: str, welcome: requests.Welcome) -> None:
        self.connection = connection
        self.name = name
        """The name of this process, in every group that it does not join under another one."""
        self.server = welcome.server
        """The name of the server."""
        self.address = connection.where

    def __repr__(self) -> str:
        return f"<Link of {self.name!r} to {self.address}>"

    @overload
    async def join(
        self,
        group: str,
        stack: str | None = None,
        *,
        process: str | None = None,
        own: bool = True,
        open: bool = False,
        codec: None = None,
    ) -> Group[bytes]: ...
    @overload
    async def join(
        self,
        group: str,
        stack: str | None = None,
        *,
        process: str | None = None,
        own: bool = True,
        open: bool = False,
        codec: Codec[T],
    ) -> Group[T]: ...
    async def join(
        self,
        group: str,
        stack: str | None = None,
        *,
        process: str | None = None,
        own: bool = True,
        open: bool = False,
        codec: Codec[Any] | None = None,
    ) -> Group[Any]:
        """Join a group. If it does not exist and a stack is given, create it first.

        If it exists with another stack than the given one, that is an error. `open` lets processes
        send that are not members, and counts only for a group that is created here. The other
        arguments are those of `Group.join` and `Group`.
        """
        joined: Group[Any] = Group(self, group, codec=codec)
        await self.enter(joined, stack, process=process, own=own, open=open)
        return joined

    async def enter(
        self, group: Group[Any], stack: str | None, *, process: str | None, own: bool, open: bool
    ) -> None:
        """Join a group, and create it first if need be; see `join`."""
        for _ in range(CREATIONS):
            try:
                await group.join(process, own)
                break
            except NoSuchGroup:
                if stack is None:
                    raise
            with suppress(GroupExists):  # another process was quicker
                await group.create(stack, open=open)
        else:
            raise NoSuchGroup(
                f"the group '{group.name}' is destroyed as often as it is created; find out by whom"
            )
        if stack is not None:
            await self._check_stack(group, stack)

    async def _check_stack(self, group: Group[Any], stack: str) -> None:
        has = group.inbox().stack
        if has and has.lower().split() != stack.lower().split():
            await group.leave()
            raise BadStack(
                f"the group '{group.name}' has the stack '{has}', not '{stack}'; join it without"
                " naming a stack, or create another group"
            )

    @overload
    async def attach(self, group: str, *, codec: None = None) -> Group[bytes]: ...
    @overload
    async def attach(self, group: str, *, codec: Codec[T]) -> Group[T]: ...
    async def attach(self, group: str, *, codec: Codec[Any] | None = None) -> Group[Any]:
        """Return a group to send to without being a member; it must have been created open."""
        attached: Group[Any] = Group(self, group, codec=codec)
        return await attached.attach()

    async def multicast(self, groups: Sequence[Group[T]], body: T) -> None:
        """Send one message, with one place in the order, to several groups with the same stack."""
        handles = self.handles_of(groups)
        data = groups[0].encoded(body)
        outgoing = self.connection.outgoing
        if outgoing.busy:
            await outgoing.room()
            handles = self.handles_of(groups)
        outgoing.send(groups[0].inbox(), handles, data)

    def handles_of(self, groups: Sequence[Group[Any]]) -> list[int]:
        """Return the handles of groups, provided that one message can go to all of them."""
        if not 1 <= len(groups) <= requests.MOST_GROUPS_OF_A_MESSAGE:
            raise UsageError(
                f"a message to {len(groups)} groups; 1 to {requests.MOST_GROUPS_OF_A_MESSAGE}"
                " are possible"
            )
        check_groups(groups, Group)
        first = groups[0]
        stack = first.inbox().stack
        handles: list[int] = []
        for group in groups:
            inbox = group.inbox()
            if group.link is not self:
                raise UsageError("a message to groups of different links; use one link for all")
            if inbox.handle in handles:
                raise UsageError(f"the group '{group.name}' twice in one message; name it once")
            if inbox.stack != stack:
                raise MixedStacks(
                    f"'{first.name}' has the stack '{stack}', '{group.name}' has '{inbox.stack}':"
                    " an order spans only groups that were created with the same one"
                )
            handles.append(inbox.handle)
        return handles

    async def inspect(self) -> dict[str, Any]:
        """Return what the server says about itself."""
        answer = await self.connection.ask(requests.Inspect, requests.Inspection)
        return msgspec.json.decode(answer.report, type=dict[str, Any])

    async def close(self) -> None:
        """Leave all groups and disconnect, after all that was sent."""
        self.connection.end(requests.Goodbye())
        try:
            async with asyncio.timeout(self.connection.timeout):
                await asyncio.shield(self.connection.closed)
        except TimeoutError:
            self.connection.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


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
        return self._connect().__await__()

    async def __aenter__(self) -> Link:
        self._link = await self._connect()
        return self._link

    async def __aexit__(self, *error: object) -> None:
        assert self._link is not None
        await self._link.close()

    async def _connect(self) -> Link:
        connection = Connection(str(self._address), self._name, self._timeout)
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

    async def _open(self, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        address = self._address
        if address.path is not None:
            await loop.create_unix_connection(lambda: protocol_of(connection), address.path)
        else:
            await loop.create_connection(
                lambda: protocol_of(connection), address.host, address.port, ssl=self._tls
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


def check_groups(groups: Sequence[object], kind: type) -> None:
    """Refuse to send a message to anything but groups."""
    for group in groups:
        if not isinstance(group, kind):
            raise UsageError(f"a message to {group!r}, which is no Group; give what join returned")
