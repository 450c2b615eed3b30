"""The group server of a machine: it hosts the stacks, on behalf of the processes connected to it.

It puts together what the other modules of this package do alone: membership decides which
configuration comes next, the switchboard carries messages within one, links lead to the other
servers, and sessions to the clients.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from socket import gethostname
from typing import NoReturn

import msgspec

from flexgroup.core.errors import FlexGroupError, PeerError, UsageError
from flexgroup.membership.configuration import Configuration, GroupEntry
from flexgroup.membership.effects import (
    Answer,
    Connect,
    Disconnect,
    Effect,
    Excluded,
    Freeze,
    Install,
    SendOn,
    SendTo,
)
from flexgroup.membership.machine import Membership
from flexgroup.membership.operations import AnyOperation, LeaveServers
from flexgroup.server.connection import Connection, Talk, protocol_of
from flexgroup.server.deployment import Recording
from flexgroup.server.desk import Desk
from flexgroup.server.introduction import INTRODUCTION
from flexgroup.server.listening import listeners
from flexgroup.server.metrics import Metrics
from flexgroup.server.peers import Peers
from flexgroup.server.recording import LiveTrace
from flexgroup.server.session import Session, decode_requests
from flexgroup.server.settings import Settings
from flexgroup.server.switchboard import Switchboard
from flexgroup.trace.recorder import Recorder
from flexgroup.wire import refusals, requests
from flexgroup.wire.address import Address
from flexgroup.wire.certificates import check_identity
from flexgroup.wire.frames import array_of
from flexgroup.wire.keepalive import keep_alive

log = logging.getLogger("flexgroup.server")

TICK_SECONDS = 0.05
MOST_KINDS_OF_REFUSALS = 100


class GroupServer:
    """Give it settings and await `run`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.address = ""
        """Where other servers reach this one; known when it listens."""
        self.cluster = ""
        self.metrics = Metrics(self)
        self.membership = Membership("", "", settings.timings)
        self.peers = Peers(self)
        self.desk = Desk(self)
        self.refusals: dict[str, int] = {}
        """How often something was refused, by what it was."""
        self._loop = asyncio.get_running_loop()
        self.switchboard = Switchboard(
            self.peers, settings.limits, settings.faults, self._recording, self.desk.exclude
        )
        self.trace: LiveTrace | None = None
        self._clients = 0
        self.connections: set[Connection] = set()
        self._tickets: dict[int, Callable[[tuple[str, str] | None], None]] = {}
        self._listeners: list[asyncio.Server] = []
        self._ended: asyncio.Future[str] = self._loop.create_future()
        self._in_effects = False
        self._excluded_because = ""
        self._known_addresses: list[str] = []
        self._ticker: asyncio.TimerHandle | None = None
        self._strangers: dict[Connection, None] = {}
        """Connections that have not said who they are, the oldest first."""
        self._is_stopped = False
        self._leaves_at: float | None = None
        """The latest time at which a server that was stopped asks the others to let it go."""

    # The life of a server.

    async def start(self) -> None:
        """Listen, and become one of the servers; returns when this one is."""
        settings = self.settings
        self._listeners = await listeners(settings, self._protocol)
        port = self._listeners[0].sockets[0].getsockname()[1]
        self.address = str(Address(settings.host, port))
        if not settings.name:
            self.settings = replace(settings, name=f"{gethostname()}-{port}")
        self._tick()
        if settings.join:
            await self._join_one_of(settings.join)
        else:
            self.cluster = secrets.token_hex(4)
            self._begin()
            self.membership.found(self._loop.time())
        self.do_effects()

    async def run(self, ready: Callable[[], None] | None = None) -> str:
        """Serve until stopped; the reason why it ended."""
        try:
            await self.start()
        except FlexGroupError:
            await self._close("could not start")
            raise
        if ready is not None:
            ready()
        while True:
            reason = await self._ended
            if reason or not self.settings.rejoin:
                break
            if not await self._rejoin():
                reason = "stopped before it had joined again"
                break
        await self._close(reason)
        log.info("ended", extra={"data": {"reason": reason}})
        return reason

    def stop(self) -> None:
        """Leave the other servers in order, and end."""
        if self._is_stopped:
            return
        self._is_stopped = True
        if self.membership.configuration is None:
            self._end("stopped before it had joined")
            return
        for session in list(self.switchboard.sessions.values()):
            session.close("the server is shutting down")
        self._leaves_at = self._loop.time() + self.settings.timings.patience

    def _leave_if_done(self, latest: float) -> None:
        """What this server has taken from clients is lost with it unless others have it."""
        if self.switchboard.is_done() or self._loop.time() >= latest:
            self._leaves_at = None
            self.ask_servers(LeaveServers(), lambda _: self._end("stopped"))

    def _end(self, reason: str) -> None:
        if not self._ended.done():
            self._ended.set_result(reason)

    async def _close(self, reason: str) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
        self.switchboard.finish(reason)
        self.peers.close()
        for listener in self._listeners:
            listener.close()
        for connection in list(self.connections):
            connection.close()
        if self.trace is not None:
            configuration = self.membership.configuration
            is_last = configuration is not None and len(configuration.servers) == 1
            self.trace.finish(None)
            await self._loop.run_in_executor(None, self.trace.close, is_last)

    def _begin(self) -> None:
        """A new life as a server: with no number yet."""
        settings = self.settings
        self.membership = Membership(settings.name, self.address, settings.timings)
        if settings.trace is not None and self.trace is None:
            self.trace = LiveTrace(
                settings.trace, settings.name, settings.faults, settings.limits.untold_bytes
            )

    async def _join_one_of(self, addresses: tuple[str, ...]) -> None:
        """The first that lets this server in."""
        seconds = 10 * self.settings.timings.patience
        failures: list[str] = []
        for address in addresses:
            try:
                await asyncio.wait_for(self._join(address), seconds)
            except TimeoutError:
                failures.append(
                    f"{address} has not admitted this server within {seconds:g} s; check "
                    "that it is the address of a FlexGroup server, and try again"
                )
            except UsageError as error:
                failures.append(str(error))
            else:
                return
            if self._is_stopped:
                break
            self._ended = self._loop.create_future()
        none = "none of these lets this server in: " if len(failures) > 1 else ""
        raise UsageError(none + "; ".join(failures))

    async def _join(self, address: str) -> None:
        self._excluded_because = ""
        self._begin()
        link = await self.peers.dial(address, None)
        if link is None:
            raise UsageError(
                f"no FlexGroup server answers at {address}; start one there first, or name another "
                "with --join; if one runs there, give both --tls with certificates of one "
                "authority, or neither"
            )
        self.peers.contact = link
        self.membership.join(self._loop.time())
        self.do_effects()
        while self.membership.configuration is None:
            if self._ended.done():
                why = self._excluded_because or "this server was stopped"
                raise UsageError(f"could not join through {address}: {why}")
            await asyncio.sleep(0.005)

    async def _rejoin(self) -> bool:
        """The others have gone on without this server; come back as a new one, unless stopped."""
        self._ended = self._loop.create_future()
        self.peers.close()
        self.switchboard = Switchboard(
            self.peers,
            self.settings.limits,
            self.settings.faults,
            self._recording,
            self.desk.exclude,
        )
        while not self._is_stopped:
            for address in self._known_addresses:
                if address == self.address or self._is_stopped:
                    continue
                with suppress(FlexGroupError, TimeoutError):
                    await asyncio.wait_for(self._join(address), 10 * self.settings.timings.patience)
                    self.do_effects()
                    log.info("rejoined", extra={"data": {"through": address}})
                    return True
                self._ended = self._loop.create_future()
            await asyncio.sleep(self.settings.timings.patience / 2)
        return False

    def _tick(self) -> None:
        self._ticker = self._loop.call_later(TICK_SECONDS, self._tick)
        now = self._loop.time()
        self.peers.tell_who_was_heard(now)
        self.membership.tick(now)
        self.do_effects()
        if self._leaves_at is not None:
            self._leave_if_done(self._leaves_at)
        if self.trace is not None:
            self.trace.hand_over()
            self.switchboard.backpressure.hold_all_up(self.trace.is_behind)

    # What membership asks for.

    def do_effects(self) -> None:
        if self._in_effects:
            return
        self._in_effects = True
        try:
            while effects := self.membership.take_effects():
                for effect in effects:
                    self._do(effect)
        finally:
            self._in_effects = False

    def _do(self, effect: Effect) -> None:
        if isinstance(effect, SendTo):
            link = self.peers.links.get(effect.server)
            if link is not None:
                link.say(effect.message)
        elif isinstance(effect, SendOn):
            on = self.peers.contact if effect.link is None else self.peers.open.get(effect.link)
            if on is not None:
                on.say(effect.message)
        elif isinstance(effect, Connect):
            self.peers.connect(effect.server)
        elif isinstance(effect, Disconnect):
            self.peers.forget(effect.number)
        elif isinstance(effect, Freeze):
            self.metrics.froze()
            report = self.switchboard.freeze()
            log.info("frozen", extra={"data": {"for": effect.change}})
            self.membership.frozen(effect.change, report, self._loop.time())
        elif isinstance(effect, Install):
            self._install(effect)
        elif isinstance(effect, Answer):
            answer = self._tickets.pop(effect.ticket, None)
            if answer is not None:
                answer(effect.error)
        elif isinstance(effect, Excluded):
            self._excluded_because = self._excluded_because or effect.reason
            log.warning("excluded", extra={"data": {"reason": self._excluded_because}})
            self.switchboard.finish(f"this server was excluded: {effect.reason}")
            if self.trace is not None:
                self.trace.finish(None)
            self._end("" if self.settings.rejoin and not self._is_stopped else effect.reason)

    def _install(self, effect: Install) -> None:
        configuration = effect.configuration
        self._known_addresses = [server.address for server in configuration.servers]
        present = {server.number for server in configuration.servers}
        ended = self.switchboard.domains
        self.switchboard.install(configuration, effect.number, effect.flush)
        self.metrics.installed(ended)
        self.desk.installed()
        self.peers.keep_only(present, configuration.next_server)
        log.info(
            "installed",
            extra={
                "data": {
                    "configuration": configuration.number,
                    "servers": [server.name for server in configuration.servers],
                    "groups": len(configuration.groups),
                }
            },
        )

    def _recording(self, configuration: Configuration) -> Recording:
        def recorder(stack: str, groups: tuple[GroupEntry, ...]) -> Recorder | None:
            if self.trace is None:
                return None
            return self.trace.recorder(self.cluster, configuration, stack, groups)

        if self.trace is not None:
            self.trace.finish({server.number for server in configuration.servers})
        return recorder

    def cannot_join(self, reason: str) -> None:
        """Found out while this server was joining the others."""
        self._excluded_because = reason
        self._end("" if self.settings.rejoin else reason)

    def ask_servers(
        self, operation: AnyOperation, answer: Callable[[tuple[str, str] | None], None]
    ) -> None:
        ticket = self.membership.propose(operation, self._loop.time())
        self._tickets[ticket] = answer
        self.do_effects()

    # Connections that come in.

    def _protocol(self) -> asyncio.Protocol:
        return protocol_of(Connection(self))

    def opened(self, connection: Connection) -> None:
        self.connections.add(connection)
        if len(self._strangers) >= self.settings.limits.strangers:
            # Whoever means well says at once who it is.
            self._abort_if_unknown(next(iter(self._strangers)))
        self._strangers[connection] = None
        self._loop.call_later(
            self.settings.limits.silent_seconds, self._abort_if_unknown, connection
        )

    def _abort_if_unknown(self, connection: Connection) -> None:
        """Also one that was closed and takes what is left to be sent never."""
        if self._strangers.pop(connection, True) is None and connection.talk is None:
            self.refused(connection, "silent: it never said who it was")
            connection.abort()

    def closed(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self._strangers.pop(connection, None)
        self.metrics.connection_ended(connection)

    def refused(self, connection: Connection, reason: str) -> None:
        kind = reason.split(":")[0].split(";")[0][:40]
        kind = " ".join("".join(c for c in kind if not c.isdigit()).split())
        if len(self.refusals) >= MOST_KINDS_OF_REFUSALS and kind not in self.refusals:
            kind = "other"  # reasons may quote what strangers say
        self.refusals[kind] = self.refusals.get(kind, 0) + 1
        contact = self.peers.contact
        if contact is not None and contact.connection is connection:
            self._excluded_because = reason
        log.warning("refused", extra={"data": {"from": connection.where(), "reason": reason}})
        # It is going to be closed, which takes for ever if the other end reads nothing more.
        self._loop.call_later(self.settings.limits.silent_seconds, connection.abort)

    def failed(self, connection: Connection) -> None:
        log.exception("internal error", extra={"data": {"from": connection.where()}})

    def first_frame(self, connection: Connection, content: bytes) -> Talk:
        talk = self._greeted(connection, content)
        self._strangers.pop(connection, None)
        return talk

    def _greeted(self, connection: Connection, content: bytes) -> Talk:
        if content[:1] == INTRODUCTION:
            return self.peers.introduced(connection, content)
        asked = decode_requests(content)
        if len(asked) != 1 or not isinstance(asked[0], requests.Hello):
            raise PeerError("the first frame of a client is one Hello")
        hello = asked[0]
        if hello.version != requests.VERSION:
            self._turn_away(
                connection,
                refusals.BAD_VERSION,
                f"a client that speaks version {hello.version}, not {requests.VERSION}",
            )
        if self._is_stopped:
            self._turn_away(connection, refusals.CLOSING, "the server is shutting down")
        if len(self.switchboard.sessions) >= self.settings.limits.clients:
            reason = f"too many clients: at most {self.settings.limits.clients}"
            self._turn_away(connection, refusals.TOO_MANY, reason)
        try:
            self.check_certificate(connection, hello.name)
        except PeerError as error:
            self._turn_away(connection, refusals.NOT_ALLOWED, str(error))
        self._clients += 1
        limits = self.settings.limits
        keep_alive(connection.transport, limits.gone_seconds)
        session = Session(self._clients, hello.name, connection, limits, self.desk)
        self.switchboard.sessions[session.number] = session
        number = secrets.randbits(32)
        connection.reader.begin_at(number)
        session.say(
            requests.Welcome(
                self.settings.name, number, limits.window, limits.largest_message, limits.sends
            )
        )
        return session

    def _turn_away(self, connection: Connection, code: str, reason: str) -> NoReturn:
        """Tell a client why, before the connection is closed."""
        refused = msgspec.msgpack.encode(requests.Refused(None, code, reason))
        connection.send(array_of([refused]))
        raise PeerError(reason)

    def check_certificate(self, connection: Connection, client: str | None) -> None:
        """With TLS, names are those of certificates."""
        if self.settings.tls_server is not None:
            check_identity(connection.transport, client)

    def web_page(self, method: str, path: str) -> tuple[str, str, bytes]:
        if method not in ("GET", "HEAD"):
            return "405 Method Not Allowed", "text/plain", b"Pages here can only be read.\n"
        if path.partition("?")[0] == "/metrics":
            return "200 OK", "text/plain; version=0.0.4; charset=utf-8", self.metrics.text()
        return "404 Not Found", "text/plain", b"There is /metrics here, and nothing else.\n"
