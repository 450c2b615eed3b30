"""The links of a server to the others, and what keeps them up."""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import TYPE_CHECKING

from flexgroup.core.errors import PeerError
from flexgroup.membership.configuration import Server
from flexgroup.membership.messages import ControlMessage
from flexgroup.membership.operations import Renew
from flexgroup.protocols.table import PROTOCOLS
from flexgroup.server.connection import Connection, protocol_of
from flexgroup.server.introduction import (
    VERSION,
    PeerHello,
    PeerWelcome,
    decode_hello,
    encode_introduction,
)
from flexgroup.server.link import Link
from flexgroup.wire.address import parse_server_address

if TYPE_CHECKING:
    from flexgroup.server.server import GroupServer

log = logging.getLogger("flexgroup.server")

REDIAL_SECONDS = 0.1
MOST_HELD_BYTES = 64 << 20
"""Of what is to be sent to a server that is not linked yet."""


def difference(protocols: list[str]) -> str:
    """What one of two servers knows and the other does not; empty if they know the same."""
    names = sorted(set(protocols) ^ set(PROTOCOLS))
    if not names:
        return ""
    return (
        f"only one of two servers has the protocols {', '.join(names)}; start all servers with the "
        "same version and the same --protocols"
    )


class Peers:
    """Dials, accepts and replaces links. One that broke may have lost what was under way: then
    all servers step into a new configuration, and deliver everything before."""

    def __init__(self, server: GroupServer) -> None:
        self.links: dict[int, Link] = {}
        """By the number of the server at the other end."""
        self.contact: Link | None = None
        """Through which this server joins."""
        self.open: dict[int, Link] = {}
        """All connections to servers, also to those that are no members yet, the oldest first."""
        self._links_ever = 0
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._wanted: dict[int, Server] = {}
        self._dialing: dict[str, asyncio.Task[None]] = {}
        self._held: dict[int, list[tuple[bytes, bytes]]] = {}
        self._held_bytes = 0
        self._broken: set[int] = set()
        """Servers that the link to was lost or replaced."""
        self._members: set[int] = set()
        """The servers of the installed configuration."""

    def close(self) -> None:
        """Close the links to members; what is here is then as at the beginning."""
        for task in self._dialing.values():
            task.cancel()
        for link in list(self.links.values()):
            link.connection.abort()
        self.contact = None
        self.links.clear()
        self._wanted = {}
        self._dialing = {}
        self._held = {}
        self._held_bytes = 0
        self._broken = set()
        self._members = set()

    def hold(self, server: int, head: bytes, data: bytes | bytearray) -> None:
        """What is for a server that is not linked yet."""
        if server in self._wanted and self._held_bytes + len(data) <= MOST_HELD_BYTES:
            self._held.setdefault(server, []).append((head, bytes(data)))
            self._held_bytes += len(data)

    def keep_only(self, servers: set[int], next_server: int) -> None:
        """Close the links to servers that are not members any more; newcomers stay."""
        self._members = servers
        for number in set(self.links) - servers:
            if number < next_server:
                self.links.pop(number).connection.close()
        self._broken &= servers

    def forget(self, number: int) -> None:
        self._wanted.pop(number, None)
        link = self.links.pop(number, None)
        if link is not None:
            link.server = None
            if number in self._members:
                link.connection.abort()  # but a newcomer may only get another number
        self._held_bytes -= sum(len(data) for _, data in self._held.pop(number, ()))

    def connect(self, server: Server) -> None:
        self._wanted[server.number] = server
        if server.number in self.links or server.number == self._server.membership.number:
            return
        for link in self.open.values():
            if link.server is None and link.address == server.address:
                self._adopt(link, server.number)
                return
        self._dial_later(server, 0.0)

    def _dial_later(self, server: Server, seconds: float) -> None:
        if server.address not in self._dialing:
            self._dialing[server.address] = self._loop.create_task(
                self._keep_dialing(server, seconds)
            )

    async def _keep_dialing(self, server: Server, seconds: float) -> None:
        """Until there is a link, or none is wanted."""
        try:
            await asyncio.sleep(seconds)
            while self._wanted.get(server.number) == server and server.number not in self.links:
                link = await self.dial(server.address, server.number)
                if link is not None:
                    return
                await asyncio.sleep(REDIAL_SECONDS)
        finally:
            if self._dialing.get(server.address) is asyncio.current_task():
                del self._dialing[server.address]

    async def dial(self, address: str, number: int | None) -> Link | None:
        where = parse_server_address(address)
        settings = self._server.settings
        connection = Connection(self._server)
        try:
            await asyncio.wait_for(
                self._loop.create_connection(
                    lambda: protocol_of(connection),
                    where.host,
                    where.port,
                    ssl=self._server.settings.tls_client,
                ),
                settings.timings.patience,
            )
        except ConnectionRefusedError:
            if number is not None:
                self._server.membership.link_lost(number, True, self._loop.time())
                self._server.do_effects()
            return None
        except (OSError, TimeoutError):
            return None
        link = self._new_link(connection, address, address, number, True)
        connection.talk = link
        hello = PeerHello(
            VERSION,
            self._server.cluster or None,
            self._server.settings.name,
            self._server.address,
            self._server.membership.number,
            sorted(PROTOCOLS),
        )
        connection.send(encode_introduction(hello))
        if number is not None:
            self._adopt(link, number)
        return link

    def _new_link(
        self, connection: Connection, name: str, address: str, server: int | None, opened_here: bool
    ) -> Link:
        self._links_ever += 1
        link = Link(connection, self, self._links_ever, name, address, server, opened_here)
        self.open[link.number] = link
        return link

    def _adopt(self, link: Link, number: int) -> None:
        """This is the link to that server from now on."""
        link.server = number
        other = self.links.get(number)
        if other is not None and other is not link and other.connection.is_open:
            # Both dialled at once: the one that the older server opened stays.
            mine = self._server.membership.number
            from_older = mine is not None and mine < number
            keep, drop = (link, other) if link.opened_here == from_older else (other, link)
            drop.server = None
            drop.connection.close()
            self._broken.add(number)
            link = keep
        self.links[number] = link
        for head, data in self._held.pop(number, ()):
            self._held_bytes -= len(data)
            link.gathered.append((head, data))
        link.flush()
        if number in self._broken:
            self._broken.discard(number)
            self._server.ask_servers(Renew(), lambda _: None)

    def welcomed(self, link: Link, welcome: PeerWelcome) -> None:
        if self._server.cluster and welcome.cluster != self._server.cluster:
            raise PeerError(f"the server at {link.address} belongs to another cluster")
        self._server.check_certificate(link.connection, None)
        different = difference(welcome.protocols)
        if different:
            self._server.cannot_join(different)
            raise PeerError(different)
        self._server.cluster = welcome.cluster
        link.name = welcome.name
        if link.server is not None and welcome.number not in (None, link.server):
            self._another_lives_there(link, link.server)
        if link.server is None and welcome.number is not None:
            self._adopt(link, welcome.number)

    def _another_lives_there(self, link: Link, number: int) -> None:
        """At the address of a server that is gone."""
        link.server = None
        if self.links.get(number) is link:
            del self.links[number]
        link.connection.close()
        self._server.membership.link_lost(number, True, self._loop.time())
        self._server.do_effects()

    def introduced(self, connection: Connection, content: bytes) -> Link:
        hello = decode_hello(content)
        if hello.version != VERSION:
            raise PeerError(f"a server that speaks version {hello.version}, not {VERSION}")
        if hello.cluster is not None and hello.cluster != self._server.cluster:
            raise PeerError(f"server '{hello.name}' belongs to another cluster")
        self._server.check_certificate(connection, None)
        if different := difference(hello.protocols):
            log.warning("different", extra={"data": {"from": hello.name, "reason": different}})
        session = secrets.randbits(32)
        link = self._new_link(connection, hello.name, hello.address, hello.number, False)
        connection.send(
            encode_introduction(
                PeerWelcome(
                    VERSION,
                    self._server.cluster,
                    self._server.settings.name,
                    self._server.membership.number,
                    session,
                    sorted(PROTOCOLS),
                )
            )
        )
        connection.reader.begin_at(session)
        if hello.number is not None:
            self._adopt(link, hello.number)
        return link

    def controlled(self, link: Link, message: ControlMessage) -> None:
        self._server.membership.received(link.number, link.server, message, self._loop.time())
        self._server.do_effects()

    def came(
        self, link: Link, kind: int, configuration: int, domain: int, data: bytes, at: int
    ) -> None:
        server = link.server
        if server is not None:
            self._server.switchboard.came(kind, server, configuration, domain, data, at)

    def tell_who_was_heard(self, now: float) -> None:
        """Since this was last told; not worth it for every frame."""
        for number, link in self.links.items():
            if link.heard:
                link.heard = False
                self._server.membership.heard(number, now)

    def link_closed(self, link: Link) -> None:
        self.open.pop(link.number, None)
        number = link.server
        if link is self.contact:
            self.contact = None
            if self._server.membership.configuration is None:
                self._server.membership.contact_lost(self._loop.time())
                self._server.do_effects()
        if number is None or self.links.get(number) is not link:
            return
        del self.links[number]
        self._broken.add(number)
        self._server.membership.link_lost(number, False, self._loop.time())
        self._server.do_effects()
        server = self._wanted.get(number)
        if server is not None:
            self._dial_later(server, 0.0)
