"""The links of a server to the others, and what keeps them up.

A link is one end of a connection between two servers.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import Final, Protocol, cast, final

import msgspec

from flexgroup.core.errors import PeerError, UsageError
from flexgroup.core.varints import Reader, varints
from flexgroup.membership.configuration import Server
from flexgroup.membership.messages import AnyControl, Beat, ControlMessage
from flexgroup.membership.patience import lease, stall
from flexgroup.protocols.table import PROTOCOLS
from flexgroup.server.connection import Acceptor, Connection, FrameHandler
from flexgroup.server.peers.introduction import (
    VERSION,
    PeerHello,
    PeerWelcome,
    decode_hello,
    decode_welcome,
    encode_introduction,
    is_proof,
    proof_of,
)
from flexgroup.server.peers.pieces import BEGUN, ENDED, Outgoing, Pieces
from flexgroup.server.settings import ServerIdentity, Settings
from flexgroup.wire.address import parse_server_address
from flexgroup.wire.frames import MOST_BYTES_OF_SERVERS, decoded

log = logging.getLogger("flexgroup.server")

CONTROL: Final = 0
PACKETS: Final = 1
COUNTS: Final = 2
LOGS: Final = 3
REPLICAS: Final = 6
"""After the kinds of `pieces.py`."""

REDIAL_SECONDS = 0.1
SOONEST_REDIAL = 0.01
"""A process that is killed may lose its links before its machine begins to refuse others."""
SHORTEST_DIAL = 0.5
MOST_HELD_BYTES: Final = 64 << 20
"""The most that is kept for servers that are not linked yet."""

_CONTROL_HEAD: Final = bytes([CONTROL])
_control_decoder = msgspec.msgpack.Decoder(AnyControl)
_encoder = msgspec.msgpack.Encoder()


def head_of(kind: int, domain: int, changed: int) -> bytes:
    """How a frame for a domain begins; `changed` is the number of the configuration in which a
    group of it has changed last."""
    return varints([kind, domain, changed])


def difference(protocols: list[str]) -> str:
    """What one of two servers knows and the other does not; empty if they know the same."""
    names = sorted(set(protocols) ^ set(PROTOCOLS))
    if not names:
        return ""
    return (
        f"only one of two servers has the protocols {', '.join(names)}; start all servers with the "
        "same version and the same --protocols"
    )


@final
class PeerLink(FrameHandler):
    def __init__(
        self,
        links: PeerLinks,
        number: int,
        connection: Connection,
        opened_here: bool,
        address: str,
    ) -> None:
        self.connection = connection
        self.number = number
        """The number of the link among all that this server ever had."""
        self.address = address
        """Where the server at the other end is reached by others."""
        self.server: int | None = None
        """The number of the server at the other end; None: it is no member yet."""
        self.expected: int | None = None
        """The number of the server that was dialled, if one with a number was."""
        self.welcome: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """Whether the other end has welcomed this one, once that is known."""
        self.ready = not opened_here
        self._links = links
        self.outgoing = Outgoing(connection)
        """What goes out when the link is ready."""
        self._pieces = Pieces()
        self.heard = False
        """Something has come since membership was last told so."""
        self.heard_at = 0.0
        """When membership was last told so."""
        connection.writer.allow(MOST_BYTES_OF_SERVERS)
        if opened_here:
            self.take_large_frames()

    def take_large_frames(self) -> None:
        """The other end is a server of the cluster, and no newcomer that only asks to join."""
        self.connection.is_of_server = True
        self.connection.reader.allow(MOST_BYTES_OF_SERVERS)

    def frame(self, content: bytes) -> None:
        if not self.ready:
            welcome = decode_welcome(content)
            self.connection.writer.begin_at(welcome.session)
            self.ready = True
            self._links.welcomed(self, welcome)
            if not self.welcome.done():
                self.welcome.set_result(self.connection.is_open)
            self.flush()
            return
        if not content:
            raise PeerError("a server sent an empty frame")
        self.heard = True
        kind = content[0]
        if kind in (BEGUN, ENDED):
            if not self.connection.is_of_server:
                raise PeerError("a large frame of a server that is none of the cluster")
            content = self._pieces.add(content)
            if not content:
                return
            kind = content[0]
        if kind == CONTROL:
            data = memoryview(content)[1:]
            message = decoded(_control_decoder, data, "a malformed message of a server")
            self._links.controlled(self, message)
        elif kind <= LOGS or kind == REPLICAS:
            reader = Reader(content, 1, len(content))
            domain = reader.varint()
            changed = reader.varint()
            if self.server is not None and self._links.takes_packets_of(self.server):
                self._links.taker.packets_came(
                    kind, self.server, domain, changed, content, reader.position
                )
        else:
            raise PeerError(f"a frame of kind {kind} from a server; kinds are 0 to 6")

    def lost(self, error: Exception | None) -> None:
        self._links.link_closed(self)

    def resumed(self) -> None:
        self.flush()

    def say(self, message: ControlMessage) -> None:
        frame = _CONTROL_HEAD, _encoder.encode(message)
        if self.ready and isinstance(message, Beat):
            # It says that this server is alive, and nothing of what was sent before.
            self.outgoing.overtake(frame)
        elif not self.outgoing.holds(frame):
            self.outgoing.gathered.append(frame)
            self.flush()

    def flush(self) -> None:
        if self.ready:
            self.outgoing.flush()

    def close(self) -> None:
        """What was sent still arrives, unless the other end has not answered yet."""
        if self.ready:
            self.outgoing.finish()
        self.connection.close()


class PeerEvents(Protocol):
    """What becomes known of other servers, for membership to take into account."""

    @property
    def number(self) -> int | None:
        """The number of this server, once it has one."""

    @property
    def secret(self) -> int | None:
        """What only servers of the cluster know of this one, once it joins or is one of them."""

    def received(self, link: int, server: int | None, message: ControlMessage) -> None: ...

    def heard(self, server: int) -> None: ...

    def patience_with(self, server: int) -> float:
        """How long it may say nothing before it is suspected."""

    def link_lost(self, server: int, gone: bool) -> None:
        """The link to it is lost; `gone` says that its process is certainly dead."""

    def has_beaten(self, server: int) -> bool:
        """Whether it has said that it is a server of the configuration."""

    def replaced(self, server: int) -> None:
        """Another server answers where this one was."""

    def link_replaced(self, server: int) -> None:
        """What was under way on the link to it before may be lost."""

    def contact_lost(self, reason: str) -> None:
        """The link through which this server joins is lost; the reason is empty if unknown."""

    def cannot_join(self, reason: str) -> None: ...


class PacketTaker(ABC):
    """Takes what servers send for the domains."""

    @abstractmethod
    def packets_came(
        self, kind: int, server: int, domain: int, changed: int, data: bytes, at: int
    ) -> None:
        """Take something of this kind (`PACKETS`, `COUNTS`, `LOGS` or `REPLICAS`): `changed` is the
        configuration in which the domain changed last, and `at` where the data begin."""


class PeerLinks:
    """Dials, accepts and replaces links. One that broke may have lost what was under way: then
    all servers step into a new configuration, and deliver everything before.

    Both ends of a link agree that it is the one in use: who dials takes it when it is welcome,
    and only dials without a link; who is dialled takes it at once, unless it has introduced itself
    on another one and is the older of the two. A link on which nothing comes is given up, so that
    its end is noticed on both sides, and another one is dialled until the network lets it through.

    Numbers are no secrets, so knowing one makes nobody that server: both ends of a link to a server
    with a number show that they know the secret of the one that was dialled. It is the number of
    its attempt to join, which it has drawn itself, and a configuration tells it to all servers. A
    newcomer that has none yet knows its own, and nobody but those whom its contact has told.
    """

    taker: PacketTaker

    def __init__(
        self,
        settings: Settings,
        identity: ServerIdentity,
        acceptor: Acceptor,
        events: PeerEvents,
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._acceptor = acceptor
        self._events = events
        self._loop = asyncio.get_running_loop()
        self._links_ever = 0
        self._is_cut = False
        """Whether this server is cut off from the others, for a trial."""
        self.open: dict[int, PeerLink] = {}
        """All connections to servers, also to those without a number, the oldest first."""
        self._know_nobody()

    def _know_nobody(self) -> None:
        self.by_server: dict[int, PeerLink] = {}
        """The links to members, and to newcomers, by the number of the server."""
        self.contact: PeerLink | None = None
        """The link through which this server joins."""
        self._wanted: dict[int, Server] = {}
        self._dialing: dict[int, asyncio.Task[None]] = {}
        self._looked_at = self._loop.time()
        """When links were last looked at."""
        self._held: dict[int, list[tuple[bytes, bytes]]] = {}
        self._held_bytes = 0
        self._has_gathered = False
        """Some links have something to be flushed."""
        self._broken: set[int] = set()
        """The servers whose link was lost or replaced."""
        self._members: set[int] = set()
        """The servers of the installed configuration."""

    async def part(self, seconds: float) -> None:
        """Wait until the others have closed the links to this server, which has left them: then
        they have got what it said last."""
        self._wanted.clear()
        latest = self._loop.time() + seconds
        while self.by_server and self._loop.time() < latest:
            await asyncio.sleep(0.005)

    def close(self) -> None:
        """Close the links to members, and know no other server any more."""
        for task in self._dialing.values():
            task.cancel()
        for link in list(self.by_server.values()):
            link.connection.abort()
        self.leave_contact()
        self._know_nobody()

    def cut(self, is_cut: bool) -> None:
        """Cut this server off from all others, for a trial, or end that: links break, and what
        others say is not answered, as if nothing passed between the machines."""
        self._is_cut = is_cut
        for link in list(self.open.values()) if is_cut else ():
            link.connection.abort()

    # What goes out.

    def gather(self, server: int, head: bytes, data: bytes | bytearray) -> None:
        """Have it sent with the next `flush`, or when there is a link to that server."""
        link = self.by_server.get(server)
        if link is not None:
            link.outgoing.gathered.append((head, data))
            self._has_gathered = True
        elif server in self._wanted and self._held_bytes + len(data) <= MOST_HELD_BYTES:
            self._held.setdefault(server, []).append((head, bytes(data)))
            self._held_bytes += len(data)

    def flush(self) -> None:
        if self._has_gathered:
            self._has_gathered = False
            for link in self.by_server.values():
                if link.outgoing.gathered:
                    link.flush()

    def waits(self) -> dict[int, float]:
        """How many seconds or so what goes to servers waits here, where something does."""
        now = self._loop.time()
        waits = {number: link.outgoing.waiting(now) for number, link in self.by_server.items()}
        return {number: seconds for number, seconds in waits.items() if seconds > 0}

    def say(self, server: int, message: ControlMessage) -> None:
        """Tell a server something about membership, if there is a link to it."""
        link = self.by_server.get(server)
        if link is not None:
            link.say(message)

    def say_on(self, number: int | None, message: ControlMessage) -> None:
        """Answer on the link with this number, if it is still open; None is that to the contact."""
        link = self.contact if number is None else self.open.get(number)
        if link is not None:
            link.say(message)

    # Which links there are to be.

    def keep_only(self, servers: set[int], next_server: int) -> None:
        """Close the links to servers that are not members any more; newcomers stay. One that has
        become a member is dialled again, even if that was given up before."""
        self._members = servers
        for number in list(self.by_server):
            if number not in servers and number < next_server:
                self.by_server.pop(number).close()
        self._broken &= servers
        for number, server in self._wanted.items():
            if number in servers and number not in self.by_server and number != self._events.number:
                self._dial_later(server)

    def forget(self, number: int) -> None:
        self._wanted.pop(number, None)
        link = self.by_server.pop(number, None)
        if link is not None:
            link.server = None
            if number in self._members:
                link.connection.abort()  # but a newcomer may only get another number
        self._held_bytes -= sum(len(data) for _, data in self._held.pop(number, ()))

    def connect(self, server: Server) -> None:
        self._wanted[server.number] = server
        if server.number in self.by_server or server.number == self._events.number:
            return
        self._dial_later(server)

    def leave_contact(self) -> None:
        """This server has joined, or gives it up."""
        contact, self.contact = self.contact, None
        if contact is not None:
            contact.close()

    def _dial_later(self, server: Server) -> None:
        if server.number not in self._dialing:
            self._dialing[server.number] = self._loop.create_task(self._keep_dialing(server.number))

    async def _keep_dialing(self, number: int) -> None:
        """Try until there is a link, or none is wanted; another server may get the number.

        The leader tells nobody that it has given up a newcomer, which may have been none at all: so
        it is not dialled for ever.
        """
        pause = SOONEST_REDIAL
        since, dialled = self._loop.time(), self._wanted.get(number)
        try:
            while number not in self.by_server:
                server = self._wanted.get(number)
                if server is None:
                    return
                now = self._loop.time()
                if server is not dialled or number in self._members:
                    since, dialled = now, server
                elif now - since > self._newcomer_seconds:
                    return
                link = await self.dial(server.address, server)
                if link is None or not await self._is_welcome(link):
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, REDIAL_SECONDS)
        finally:
            if self._dialing.get(number) is asyncio.current_task():
                del self._dialing[number]

    async def _is_welcome(self, link: PeerLink) -> bool:
        """Wait for the answer to the introduction; without one the link is given up."""
        try:
            async with asyncio.timeout(self._dial_seconds):
                return await link.welcome
        except TimeoutError:
            link.connection.abort()
            return False

    def _awaits(self, number: int) -> bool:
        """Whether this server has introduced itself to that one, and is not welcome yet."""
        return any(link.expected == number and not link.ready for link in self.open.values())

    @property
    def _dial_seconds(self) -> float:
        """A dial that takes longer is better begun anew: the system repeats it ever more seldom."""
        return max(SHORTEST_DIAL, self._settings.timings.patience / 4)

    @property
    def _newcomer_seconds(self) -> float:
        """The leader waits half as long for a newcomer to be reached."""
        return 4 * self._settings.timings.patience

    async def dial(self, address: str, server: Server | None) -> PeerLink | None:
        """A link to whoever is at this address, which is to be this server if one is given."""
        number = None if server is None else server.number
        if self._is_cut:
            return None
        connection = Connection(self._acceptor)
        try:
            where = parse_server_address(address)
            await asyncio.wait_for(
                self._loop.create_connection(
                    lambda: cast(asyncio.Protocol, connection),
                    where.host,
                    where.port,
                    ssl=self._settings.tls_client,
                ),
                self._dial_seconds,
            )
        except ConnectionRefusedError:
            if number is not None:
                self._events.link_lost(number, True)
            return None
        except (OSError, TimeoutError, ValueError, UsageError):
            return None  # nobody is there, or the address, which another server has told, is none
        if number in self.by_server:  # which was faster
            connection.close()
            return None
        if not connection.is_open:  # it has ended already, and nobody would be told again
            return None
        if self._is_cut:  # since the dial began
            connection.abort()
            return None
        link = self._new_link(connection, True, address)
        link.expected = number
        connection.handler = link
        identity, mine = self._identity, self._events.number
        hello = PeerHello(
            VERSION,
            identity.cluster or None,
            identity.name,
            identity.address,
            mine,
            sorted(PROTOCOLS),
            b"" if server is None else proof_of(server.attempt, mine, False),
        )
        connection.send(encode_introduction(hello))
        return link

    def _new_link(self, connection: Connection, opened_here: bool, address: str) -> PeerLink:
        self._links_ever += 1
        link = PeerLink(self, self._links_ever, connection, opened_here, address)
        self.open[link.number] = link
        return link

    def _adopt(self, link: PeerLink, number: int) -> None:
        """This is the link to that server from now on."""
        link.server = number
        link.take_large_frames()
        link.heard_at = self._loop.time()
        other = self.by_server.get(number)
        if other is not None:
            # The other server dials only without a link: that one is lost, as it knows already.
            other.server = None
            other.connection.abort()
            self._broke(number)
        self.by_server[number] = link
        for head, data in self._held.pop(number, ()):
            self._held_bytes -= len(data)
            link.outgoing.gathered.append((head, data))
        link.flush()
        if number in self._broken:
            self._broken.discard(number)
            self._events.link_replaced(number)

    def _broke(self, number: int) -> None:
        """What was under way on the link to this server may be lost."""
        if number in self._wanted:
            self._broken.add(number)

    # What links tell of.

    def introduced(self, connection: Connection, content: bytes) -> PeerLink:
        """A server has dialled this one, and says who it is."""
        if self._is_cut:
            raise PeerError("cut off from the other servers, for a trial")
        hello = decode_hello(content)
        if hello.version != VERSION:
            raise PeerError(f"the server speaks version {hello.version}, not {VERSION}")
        identity = self._identity
        if hello.cluster is not None and hello.cluster != identity.cluster:
            raise PeerError(f"server '{hello.name}' belongs to another cluster")
        self._settings.check_certificate(connection.transport, None)
        mine, number, secret = self._events.number, hello.number, self._events.secret
        if number is not None and (
            secret is None or not is_proof(hello.proof, secret, number, False)
        ):
            # It may be a server that has dialled the one before this, and is to know who is here.
            connection.send(encode_introduction(self._welcome(0, b"")))
            raise PeerError(
                f"impostor: '{hello.name}' says to be server {number}, and does not know the "
                "secret of this one, or means an earlier one at this address"
            )
        if mine is not None and number is not None and mine < number and self._awaits(number):
            raise PeerError(
                f"server '{hello.name}' is being dialled from here, and this one is older"
            )
        if different := difference(hello.protocols):
            log.warning("different", extra={"data": {"from": hello.name, "reason": different}})
        session = self._settings.random.getrandbits(32)
        link = self._new_link(connection, False, hello.address)
        # Who has shown nothing is shown nothing.
        proof = b"" if number is None or secret is None else proof_of(secret, number, True)
        connection.send(encode_introduction(self._welcome(session, proof)))
        connection.reader.begin_at(session)
        if number is not None:
            self._adopt(link, number)
        return link

    def _welcome(self, session: int, proof: bytes) -> PeerWelcome:
        identity, cluster = self._identity, self._identity.cluster or None
        protocols, number = sorted(PROTOCOLS), self._events.number
        return PeerWelcome(VERSION, cluster, identity.name, number, session, protocols, proof)

    def welcomed(self, link: PeerLink, welcome: PeerWelcome) -> None:
        identity = self._identity
        number = link.expected
        if welcome.cluster is None and number is not None:
            raise PeerError(f"the server at {link.address} belongs to no cluster yet")
        if identity.cluster and welcome.cluster not in (None, identity.cluster):
            raise PeerError(f"the server at {link.address} belongs to another cluster")
        self._settings.check_certificate(link.connection.transport, None)
        different = difference(welcome.protocols)
        if different:
            self._events.cannot_join(different)
            raise PeerError(different)
        identity.cluster = welcome.cluster or identity.cluster
        if number is None:  # the contact of a server that joins
            link.server = welcome.number
            return
        wanted = self._wanted.get(number)
        if wanted is None or wanted.address != link.address or number in self.by_server:
            link.connection.close()
        elif welcome.number != number and (
            welcome.number is not None or self._events.has_beaten(number)
        ):
            # The link leads to another server, at the address of one that is gone. Who has no
            # number may be a newcomer that does not know it yet, unless it has said it before.
            link.connection.close()
            self._events.replaced(number)
        elif not is_proof(welcome.proof, wanted.attempt, self._events.number, True):
            raise PeerError(
                f"impostor: the server at {link.address} does not know the secret of "
                f"server {number}"
            )
        else:
            self._adopt(link, number)

    def takes_packets_of(self, server: int) -> bool:
        """Whether it is a server of the configuration, or of the next one, as far as is known: a
        newcomer does not know yet who is."""
        return server in self._wanted or self._events.number is None

    def controlled(self, link: PeerLink, message: ControlMessage) -> None:
        self._events.received(link.number, link.server, message)

    def tell_who_was_heard(self) -> None:
        """Doing so for every frame would not be worth it."""
        now = self._loop.time()
        paused, self._looked_at = now - self._looked_at, now
        for number, link in list(self.by_server.items()):
            patience = self._events.patience_with(number)
            # What this server did not hear while it was stopped itself is no silence.
            if link.heard or paused > stall(patience):
                link.heard_at = now
            if link.heard:
                link.heard = False
                self._events.heard(number)
            elif now - link.heard_at > lease(patience):
                link.connection.abort()
                self.link_closed(link)

    def link_closed(self, link: PeerLink) -> None:
        self.open.pop(link.number, None)
        if not link.welcome.done():
            link.welcome.set_result(False)
        number = link.server
        if link is self.contact:
            self.contact = None
            self._events.contact_lost(link.connection.refusal)
        if number is None or self.by_server.get(number) is not link:
            return
        del self.by_server[number]
        self._broke(number)
        self._events.link_lost(number, False)
        server = self._wanted.get(number)
        if server is not None:
            self._dial_later(server)
