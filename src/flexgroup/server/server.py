"""The group server of a machine: it hosts the stacks, on behalf of the processes connected to it.

It puts together what the packages beside this module do alone: membership decides which
configuration comes next (`peers`), domains carry messages within one (`hosting`), sessions lead
to the clients (`clients`), and what happens is written to a trace if that is wanted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from socket import gethostname

from flexgroup.core.errors import FlexGroupError, UsageError
from flexgroup.membership.configuration import Configuration
from flexgroup.membership.effects import Install
from flexgroup.membership.flush import DomainReport
from flexgroup.membership.operations import LeaveServers
from flexgroup.server.clients.backpressure import Backpressure
from flexgroup.server.clients.greeting import Greeting
from flexgroup.server.clients.intake import Intake
from flexgroup.server.clients.members import LocalMembers
from flexgroup.server.clients.requests import RequestHandler
from flexgroup.server.clients.session import SessionContext
from flexgroup.server.connection import Acceptor, Connection, FrameHandler
from flexgroup.server.hosting.deployment import Deployment, Recording
from flexgroup.server.hosting.round import Round
from flexgroup.server.inspection import inspection
from flexgroup.server.metrics import Metrics, Observed
from flexgroup.server.peers.introduction import INTRODUCTION
from flexgroup.server.peers.membership_host import MembershipHost
from flexgroup.server.recording.live_trace import LiveTrace
from flexgroup.server.settings import ServerIdentity, Settings
from flexgroup.server.switchboard import Switchboard

log = logging.getLogger("flexgroup.server")

TICK_SECONDS = 0.05


class GroupServer:
    """Give it settings and await `run`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.identity = ServerIdentity(settings.name)
        self.trace: LiveTrace | None = None
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[str] = self._loop.create_future()
        self._excluded_because = ""
        self._known_addresses: list[str] = []
        self._ticker: asyncio.TimerHandle | None = None
        self._is_stopped = False
        self._leaves_at: float | None = None
        """The latest time at which a server that was stopped asks the others to let it go."""

        self.acceptor = Acceptor(
            settings,
            greet=self._greet,
            metrics_page=lambda: self._metrics.text(),
            ended=lambda connection: self._metrics.connection_ended(connection),
        )
        self.membership = MembershipHost(settings, self.identity, self.acceptor, self)
        self.links = self.membership.links
        self.deployment = Deployment(settings.faults, self._recording)
        self.members = LocalMembers()
        round = Round()
        self.intake = Intake(self.deployment, round, settings.limits)
        self.requests = RequestHandler(
            settings,
            self.deployment,
            self.members,
            propose=self.membership.propose,
            refused=self.acceptor.refused,
            inspect=self._inspect,
        )
        self.backpressure = Backpressure(
            settings.limits,
            self.members.sessions,
            released=lambda: self._switchboard.report_all(),
            excluded=self.requests.exclude,
        )
        self._switchboard = Switchboard(
            self.deployment, round, self.links, self.intake, self.members, self.backpressure
        )
        self._greeting = Greeting(
            settings,
            self.identity,
            self.members.sessions,
            SessionContext(
                settings.limits,
                round,
                self.intake.cast,
                self.requests.request,
                self.requests.session_lost,
                self.backpressure.queue_changed,
            ),
        )
        self._observed = Observed(
            self.identity, self.deployment, self.members.sessions, self.links, self.acceptor
        )
        self._metrics = Metrics(self._observed)

    @property
    def address(self) -> str:
        """Where other servers reach this one; known when it listens."""
        return self.identity.address

    # The life of a server.

    async def start(self) -> None:
        """Listen, and become one of the servers; returns when this one is."""
        address = await self.acceptor.listen()
        self.identity.address = str(address)
        if not self.identity.name:
            self.identity.name = f"{gethostname()}-{address.port}"
        self._tick()
        if self._settings.trace is not None:
            self.trace = LiveTrace(
                self._settings.trace,
                self.identity.name,
                self._settings.faults,
                self._settings.limits.unwritten_bytes,
            )
        if self._settings.join:
            await self._join_one_of(self._settings.join)
        else:
            self.identity.cluster = f"{self._settings.random.getrandbits(32):08x}"
            self.membership.found()

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
            if reason or not self._settings.rejoin:
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
        self._greeting.is_closing = True
        if not self.membership.is_member:
            self._end("stopped before it had joined")
            return
        for session in list(self.members.sessions.values()):
            session.close("the server is shutting down")
        self._leaves_at = self._loop.time() + self._settings.timings.patience

    def _leave_if_done(self, latest: float) -> None:
        """What this server has taken from clients is lost with it unless others have it."""
        is_done = not (self.intake.is_holding or self.deployment.has_undelivered())
        if is_done or self._loop.time() >= latest:
            self._leaves_at = None
            self.membership.propose(LeaveServers(), lambda _: self._end("stopped"))

    def _end(self, reason: str) -> None:
        if not self._ended.done():
            self._ended.set_result(reason)

    async def _close(self, reason: str) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
        self._stop_hosting(reason)
        self.links.close()
        self.acceptor.close()
        if self.trace is not None:
            self.trace.finish(None)
            await self._loop.run_in_executor(None, self.trace.close, self.membership.is_last)

    def _stop_hosting(self, reason: str) -> None:
        """Nothing more is delivered here, and clients have to look for another server."""
        for session in list(self.members.sessions.values()):
            session.close(reason)
            self.requests.session_lost(session, reason)
        self.intake.clear()
        self._switchboard.finish()

    async def _join_one_of(self, addresses: Sequence[str]) -> str:
        """Join through the first of these servers that lets this one in, and return its address."""
        seconds = 10 * self._settings.timings.patience
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
                return address
            if self._is_stopped:
                break
            self._ended = self._loop.create_future()
        none = "none of these lets this server in: " if len(failures) > 1 else ""
        raise UsageError(none + "; ".join(failures))

    async def _join(self, address: str) -> None:
        self._excluded_because = ""
        if not await self.membership.join(address):
            raise UsageError(
                f"no FlexGroup server answers at {address}; start one there first, or name another "
                "with --join; if one runs there, give both --tls with certificates of one "
                "authority, or neither"
            )
        while not self.membership.is_member:
            if self._ended.done():
                why = self._excluded_because or "this server was stopped"
                raise UsageError(f"could not join through {address}: {why}")
            await asyncio.sleep(0.005)

    async def _rejoin(self) -> bool:
        """The others have gone on without this server; come back as a new one, unless stopped."""
        self._ended = self._loop.create_future()
        self.links.close()
        while not self._is_stopped:
            others = [address for address in self._known_addresses if address != self.address]
            with suppress(FlexGroupError):
                through = await self._join_one_of(others)
                log.info("rejoined", extra={"data": {"through": through}})
                return True
            await asyncio.sleep(self._settings.timings.patience / 2)
        return False

    def _tick(self) -> None:
        self._ticker = self._loop.call_later(TICK_SECONDS, self._tick)
        self.membership.tick()
        if self._leaves_at is not None:
            self._leave_if_done(self._leaves_at)
        elif self._is_stopped and self.membership.is_isolated:
            self._end("stopped; too few of the other servers are heard to leave them in order")
        if self.trace is not None:
            self.trace.hand_over()
            self.backpressure.hold_all_up(self.trace.is_behind)

    # What membership decides.

    def freeze(self, change: int) -> list[DomainReport]:
        self._metrics.froze()
        report = self._switchboard.freeze()
        log.info("frozen", extra={"data": {"for": change}})
        return report

    def install(self, effect: Install) -> None:
        configuration = effect.configuration
        self._known_addresses = [server.address for server in configuration.servers]
        present = {server.number for server in configuration.servers}
        ended = self.deployment.domains
        self._switchboard.install(configuration, effect.number, effect.flush)
        self._metrics.installed(ended)
        self.requests.installed()
        self.links.keep_only(present, configuration.next_server)
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

    def excluded(self, reason: str) -> None:
        self._excluded_because = self._excluded_because or reason
        log.warning("excluded", extra={"data": {"reason": self._excluded_because}})
        self._stop_hosting(f"this server was excluded: {reason}")
        if self.trace is not None:
            self.trace.finish(None)
        self._end("" if self._settings.rejoin and not self._is_stopped else reason)

    def cannot_join(self, reason: str) -> None:
        """This was found out while this server was joining the others."""
        self._excluded_because = reason
        self._end("" if self._settings.rejoin else reason)

    def _recording(self, configuration: Configuration) -> Recording:
        if self.trace is None:
            return lambda stack, groups: None
        self.trace.finish({server.number for server in configuration.servers})
        return partial(self.trace.recorder, self.identity.cluster, configuration)

    # What connections need.

    def _greet(self, connection: Connection, content: bytes) -> FrameHandler:
        if content[:1] == INTRODUCTION:
            return self.links.introduced(connection, content)
        return self._greeting.greet(connection, content)

    def _inspect(self) -> dict[str, object]:
        return inspection(self._observed, self._metrics.totals())
