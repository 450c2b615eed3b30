"""What a server is told when it is started, and who it is then."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random, SystemRandom
from time import time_ns

from flexgroup.core.errors import UsageError
from flexgroup.membership.timings import Timings
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.server.peers.stable_storage import StableStorage
from flexgroup.server.recording.handoff import Handoff
from flexgroup.wire.address import DEFAULT_PORT
from flexgroup.wire.certificates import check_identity
from flexgroup.wire.names import name_of
from flexgroup.wire.seals import SealKeys
from flexgroup.worlds.network.faults import Faults


@dataclass(frozen=True)
class Limits:
    """How much a server takes on: each figure bounds memory that others could otherwise fill."""

    largest_message: int = 1 << 20
    """How many bytes one message may have."""
    window: int = 1024
    """Deliveries of a group under way to a client that it has not taken yet."""
    queue: int = 10_000
    """Deliveries that wait for a client at the server before senders are slowed down."""
    queue_bytes: int = 32 << 20
    slow_seconds: float = 5.0
    """How long a client's queue may stay full before the client is excluded."""
    under_way: int = 1024
    """Messages of this server, in one domain, that are not yet delivered everywhere."""
    under_way_bytes: int = 8 << 20
    unwritten_bytes: int = 64 << 20
    """Bytes of events that the process which writes the trace has not taken yet."""
    pack: int = 256
    """Messages of clients that share an envelope; 1: none do."""
    sends: int = 1024
    """Messages that a client may send before the server has taken the first of them."""
    requests: int = 1000
    """Requests of a client that wait for the one before to be carried out."""
    clients: int = 10_000
    groups_per_client: int = 1_000
    strangers: int = 1_000
    """Connections that have not said who they are; then the oldest of them is closed. There are
    never more of them than a quarter of the files that the process may open."""
    gone_seconds: float = 20.0
    """How long a client's machine may not answer, whether there is anything to send or not."""
    silent_seconds: float = 10.0
    """How long a new connection may take for the handshake of TLS, and then to say who it is."""
    frame_seconds: float = 60.0
    """How long a frame of a client may take from its beginning to its end."""
    unfinished_bytes: int = 128 << 20
    """Bytes of frames of all clients that are not complete; then whoever has most is closed."""


@dataclass(frozen=True)
class Settings:
    name: str
    """If it is empty, the server is named after its machine and port."""
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    """The port to listen on; if it is 0, the system chooses one that is free."""
    unix: Path | None = None
    join: tuple[str, ...] = ()
    """Addresses of servers, of which one at least runs; none: this is the first."""
    data: Path | None = None
    """A folder where the server keeps what it needs to come back; with None, it keeps nothing."""
    storage: Callable[[], StableStorage] | None = None
    """Gives what the server is to keep this in, if that is not to be a folder."""
    trace: Path | None = None
    handoff: Callable[[str], Handoff] | None = None
    """Gives a server of this name what takes its records, if they are not to go into a folder."""
    tls_server: ssl.SSLContext | None = None
    """Used for connections that come in; both sides show certificates."""
    tls_client: ssl.SSLContext | None = None
    """Used for connections to other servers."""
    limits: Limits = field(default_factory=Limits)
    timings: Timings = field(default_factory=Timings)
    faults: Faults = field(default_factory=Faults)
    seals: SealKeys | None = None
    """The keys with which stacks that need seals make and check them."""
    attack: str = ""
    """The kind of attack that this server makes, for trials; empty if it is a correct one."""
    rejoin: bool = True
    """If the others exclude this server, it joins them again as a new one."""
    random: Random = field(default_factory=SystemRandom)
    """Numbers that nobody should guess are drawn from it."""
    clock: Callable[[], int] = time_ns
    """The time that is recorded, in nanoseconds since 1970."""

    def __post_init__(self) -> None:
        if self.name:
            name_of("the name of a server", self.name)

    def check_seals(self, plan: StackPlan, servers: Iterable[str]) -> None:
        """Raise UsageError unless this server has the keys that a stack of these servers needs."""
        if not plan.needs_seals:
            return
        if self.seals is None:
            raise UsageError(
                f"'{plan.name}' rests on seals, and this server has no key to make and none to "
                "check them with: start all servers of the group with --seals DIR"
            )
        self.seals.check_known(servers)

    def check_certificate(self, transport: asyncio.Transport, client: str | None) -> None:
        """Raise PeerError unless the other end shows the certificate of this client, or, with None,
        that of a server. Without TLS, anybody is believed."""
        if self.tls_server is not None:
            check_identity(transport, client)


@dataclass
class ServerIdentity:
    """Who a server is, as far as that is known."""

    name: str
    address: str = ""
    """Where other servers reach it; known when it listens."""
    cluster: str = ""
    """The first server of a cluster draws this name; others learn it when they join."""
