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
from dataclasses import replace
from socket import gethostname

from flexgroup.core.errors import FlexGroupError, UsageError
from flexgroup.membership.configuration import Configuration, DomainEntry, ReplicatedDomain
from flexgroup.membership.decision import Casts
from flexgroup.membership.effects import Freeze, Install
from flexgroup.membership.flush import Report
from flexgroup.membership.operations import LeaveServers, OpenLog
from flexgroup.membership.patience import stall
from flexgroup.membership.stable import Snapshot, first_number
from flexgroup.server.clients.backpressure import Backpressure
from flexgroup.server.clients.confirmations import Confirmations
from flexgroup.server.clients.contents import opened
from flexgroup.server.clients.greeting import Greeting
from flexgroup.server.clients.intake import Intake
from flexgroup.server.clients.members import LocalMembers
from flexgroup.server.clients.replica_intake import ReplicaIntake
from flexgroup.server.clients.requests import RequestHandler
from flexgroup.server.clients.session import KeptPart, SessionContext
from flexgroup.server.clients.turns import Turns
from flexgroup.server.connection import Acceptor, Connection, FrameHandler
from flexgroup.server.hosting.deployment import Deployment
from flexgroup.server.hosting.replicas import Replicas
from flexgroup.server.hosting.round import Round
from flexgroup.server.inspection import inspection
from flexgroup.server.metrics import Metrics, Observed
from flexgroup.server.peers.introduction import INTRODUCTION
from flexgroup.server.peers.kept_messages import KeptMessages
from flexgroup.server.peers.membership_host import MembershipHost
from flexgroup.server.peers.stable_storage import (
    DataFolder,
    Saved,
    StableStorage,
    StorageError,
)
from flexgroup.server.recording.handoff import Handoff
from flexgroup.server.recording.live_trace import LiveTrace, pipe_to
from flexgroup.server.settings import ServerIdentity, Settings
from flexgroup.server.switchboard import Switchboard
from flexgroup.trace.recorder import Recorder
from flexgroup.wire.address import parse_server_address

log = logging.getLogger("flexgroup.server")

TICK_SECONDS = 0.05


class GroupServer:
    """Give it settings and await `run`."""

    def __init__(self, settings: Settings) -> None:
        self._storage = _storage_of(settings)
        self._saved = None if self._storage is None else self._storage.load()
        if self._saved is not None:
            settings = _as_before(settings, self._saved.snapshot)
        self._settings = settings
        self.identity = ServerIdentity(settings.name)
        self.trace: LiveTrace | None = None
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[str] = self._loop.create_future()
        self._excluded_because = ""
        self._storage_failure: StorageError | None = None
        self._known_addresses: list[str] = []
        self._ticker: asyncio.TimerHandle | None = None
        self._is_stopped = False
        self._leaves_at: float | None = None
        """The latest time at which a server that was stopped asks the others to let it go."""
        self._has_left = False

        self.acceptor = Acceptor(
            settings,
            greet=self._greet,
            metrics_page=lambda: self._metrics.text(),
            ended=lambda connection: self._metrics.connection_ended(connection),
        )
        self.membership = MembershipHost(
            settings, self.identity, self.acceptor, self, self._storage
        )
        self.links = self.membership.links
        self.deployment = Deployment(
            settings.faults,
            self._recording,
            settings.clock,
            None if self._storage is None else self._messages,
        )
        self.members = LocalMembers()
        self._round = round = Round(stall(settings.timings.shortest_patience))
        round.awoke = self.membership.tick
        self.replicas = Replicas(
            settings,
            self.identity,
            round,
            self.links,
            self._recording,
            self._hand_over,
            self._storage,
            self.membership.silent,
        )
        self.membership.noticed = self.replicas.look
        self.replicas.give = self.members.deliver
        self.replicas.lost = self.members.send_away
        self.sends_to_replicas = ReplicaIntake(self.replicas, settings.limits)
        self.intake = Intake(self.deployment, round, settings.limits, self.sends_to_replicas)
        confirmations = Confirmations(self.deployment, self.intake, settings.limits)
        self.requests = RequestHandler(
            settings,
            self.deployment,
            self.members,
            self.intake,
            self.sends_to_replicas,
            propose=self.membership.propose,
            refused=self.acceptor.refused,
            confirm=confirmations.ask,
            inspect=self._inspect,
        )
        self.backpressure = Backpressure(
            settings.limits,
            self.members.sessions,
            released=lambda: self._switchboard.report_all(),
            excluded=self.requests.exclude,
        )
        self._switchboard = Switchboard(
            self.deployment,
            round,
            self.links,
            self.intake,
            self.members,
            self.backpressure,
            confirmations,
            self.replicas,
        )
        self._switchboard.compared = self._compared
        self._switchboard.open_log = lambda group, domain: self.membership.propose(
            OpenLog(group, domain), lambda _: None
        )
        self._switchboard.storage_failed = self.membership.storage_failed
        self._greeting = Greeting(
            settings,
            self.identity,
            self.members.sessions,
            SessionContext(
                settings.limits,
                round,
                Turns(),
                self.intake.cast,
                self.requests.request,
                self.requests.go_on,
                self.requests.session_lost,
                self.backpressure.queue_changed,
                self._read_kept,
                self._last_kept,
            ),
        )
        self._observed = Observed(
            self.identity,
            self.deployment,
            self.members.sessions,
            self.links,
            self.acceptor,
            self.membership.patience_with,
            self.replicas.hosted,
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
        handoff = self._handoff()
        if handoff is not None:
            self.trace = LiveTrace(
                handoff,
                self._settings.faults,
                self._settings.limits.unwritten_bytes,
                self._settings.clock,
                {self.identity.name: self._settings.attack} if self._settings.attack else {},
            )
        if self._saved is not None:
            self._come_back(self._saved)
        elif self._settings.join:
            await self._join_one_of(self._settings.join)
        else:
            self.identity.cluster = f"{self._settings.random.getrandbits(32):08x}"
            self.membership.found()

    def _come_back(self, saved: Saved) -> None:
        """The addresses of the others are in the configuration, so nobody need be named."""
        log.info("restored", extra={"data": {"configuration": saved.snapshot.configuration.number}})
        self.identity.cluster = saved.cluster
        self.replicas.open_files(saved.snapshot.configuration)
        self.membership.restore(saved.snapshot)
        self._greeting.count_from(first_number(self.membership.machine.life))

    def _handoff(self) -> Handoff | None:
        """Where this server hands what it records, if it is to record anything."""
        if self._settings.handoff is not None:
            return self._settings.handoff(self.identity.name)
        if self._settings.trace is not None:
            return pipe_to(self._settings.trace, self.identity.name)
        return None

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
            if self._storage_failure is not None:
                await self._close(str(self._storage_failure))
                raise self._storage_failure
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

    def cut(self, is_cut: bool) -> None:
        """Cut this server off from the others, for a trial, or end that; its clients stay."""
        log.warning("cut off" if is_cut else "mended")
        self.links.cut(is_cut)

    def _leave_if_done(self, latest: float) -> None:
        """What this server has taken from clients is lost with it unless others have it."""
        is_holding = self.intake.is_holding or self.sends_to_replicas.is_holding
        is_done = not (is_holding or self.deployment.has_undelivered())
        if is_done or self._loop.time() >= latest:
            self._leaves_at = None
            self.membership.propose(LeaveServers(), self._left)

    def _left(self, error: tuple[str, str] | None) -> None:
        self._has_left = error is None
        self._end("stopped")

    def _end(self, reason: str) -> None:
        if not self._ended.done():
            self._ended.set_result(reason)

    async def _close(self, reason: str) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
        self._stop_hosting(reason)
        self.replicas.close()
        if self._has_left:
            await self.links.part(self._settings.timings.patience)
        self.links.close()
        self.acceptor.close()
        if self._storage is not None:
            self._storage.close()
        if self.trace is not None:
            self.trace.finish()
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
            known = dict.fromkeys((*self._known_addresses, *self._settings.join))
            others = [address for address in known if address != self.address]
            with suppress(FlexGroupError):
                through = await self._join_one_of(others)
                log.info("rejoined", extra={"data": {"through": through}})
                return True
            await asyncio.sleep(self._settings.timings.patience / 2)
        return False

    def _tick(self) -> None:
        self._ticker = self._loop.call_later(TICK_SECONDS, self._tick)
        self.membership.tick()
        self._round.tick()
        self._switchboard.look_at_links()
        self.replicas.look()
        if self._leaves_at is not None:
            self._leave_if_done(self._leaves_at)
        elif self._is_stopped and self.membership.is_isolated:
            self._end("stopped; too few of the other servers are heard to leave them in order")
        if self.trace is not None:
            self.trace.hand_over(self._loop.time())
            self.backpressure.hold_all_up(self.trace.is_behind)

    # What membership decides.

    def freeze(self, effect: Freeze) -> Report:
        self._metrics.froze()
        report = self._switchboard.freeze(effect)
        told: dict[str, object] = {"for": effect.change, "domains": effect.domains}
        if self.membership.machine.stands_still:
            told["because"] = "hears too few of the others"
        log.info("frozen", extra={"data": told})
        return report

    def drain(self, casts: Casts, drained: Callable[[], None]) -> None:
        self._switchboard.drain(casts, drained)

    def install(self, effect: Install) -> None:
        configuration = effect.configuration
        self._known_addresses = [server.address for server in configuration.servers]
        present = {server.number for server in configuration.servers}
        going_on = {domain.number for domain in configuration.domains}
        ended = [h for h in self.deployment.domains if h.entry.number not in going_on]
        self._switchboard.install(effect)
        if not effect.is_restarted:
            self._forget_logs(configuration)
        if self.trace is not None:
            together = {rest.domain: rest.together for rest in effect.flush}
            going_on_here = present.difference(effect.restarted)
            for hosted in ended:
                number = hosted.entry.number
                self.trace.finish((number,), together.get(number) or going_on_here)
            self.trace.finish_replicas(
                [server.name for server in configuration.servers],
                [domain.number for domain in configuration.replicated],
            )
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

    def _messages(self) -> KeptMessages:
        """What holds the messages that groups of this cluster keep here."""
        assert self._storage is not None
        messages = self._storage.messages()
        messages.belong_to(self.identity.cluster)
        return messages

    def _forget_logs(self, configuration: Configuration) -> None:
        """Keep only the messages of groups that there are."""
        if self._storage is not None and self._storage.has_messages:
            self._messages().keep_only(
                [group.number for group in configuration.groups if group.keep],
                configuration.next_group,
            )

    def _compared(self, group: int) -> None:
        """What is kept of this group can be read from now on, or it is known that it cannot."""
        self.members.read_on(group)
        self.requests.installed()

    def _read_kept(self, group: int, number: int, most: int) -> KeptPart | None:
        hosted = self.deployment.domain_of.get(group)
        if hosted is None or hosted.keeping is None or not hosted.keeping.is_open:
            return None
        keeping = hosted.keeping
        try:
            messages = [
                (entry.number + place, message)
                for entry in keeping.read(number, most)
                for place, message in enumerate(opened(entry.contents))
            ]
        except StorageError as error:
            self.membership.storage_failed(error)
            return None
        wanted = [message for of, message in messages if number <= of <= keeping.given][:most]
        return keeping.first, keeping.given, wanted

    def _last_kept(self, group: int) -> int | None:
        hosted = self.deployment.domain_of.get(group)
        keeping = hosted.keeping if hosted is not None else None
        if keeping is None or not (keeping.is_open or keeping.was_open):
            return None
        return keeping.last

    def excluded(
        self, reason: str, alone: Configuration | None, missed: Configuration | None
    ) -> None:
        self._excluded_because = self._excluded_because or reason
        log.warning("excluded", extra={"data": {"reason": self._excluded_because}})
        why = f"this server was excluded: {reason}"
        if alone is not None:
            if not self.deployment.is_alone:
                self._part(alone, why)
        else:
            self._stop_hosting(why)
            if self.trace is not None:
                self.trace.finish()
        self.replicas.excluded(missed)
        self._end("" if self._settings.rejoin and not self._is_stopped else reason)

    def _part(self, alone: Configuration, reason: str) -> None:
        """Members of these groups stay, and so do their sessions; all others have to look for
        another server."""
        ended = [h.entry.number for h in self.deployment.domains if not h.entry.partitionable]
        self._switchboard.part(alone, reason)
        if self.trace is not None:
            self.trace.finish(ended)
        staying = {member.client for group in alone.groups for member in group.members}
        for session in list(self.members.sessions.values()):
            if session.number not in staying:
                session.close(reason)
                self.requests.session_lost(session, reason)

    def storage_failed(self, error: StorageError) -> None:
        self._storage_failure = error
        log.error("cannot save", extra={"data": {"reason": str(error)}})
        self._stop_hosting("this server cannot save what it agrees to")
        self._end("cannot save")

    def cannot_join(self, reason: str) -> None:
        """This was found out while this server was joining the others."""
        self._excluded_because = reason
        self._end("" if self._settings.rejoin else reason)

    def _recording(
        self, configuration: Configuration, domain: DomainEntry | ReplicatedDomain, steps: int = 0
    ) -> Recorder | None:
        if self.trace is None:
            return None
        return self.trace.recorder(self.identity.cluster, configuration, domain, steps)

    def _hand_over(self, recorder: Recorder) -> None:
        assert self.trace is not None
        self.trace.hand_over_of(recorder)

    # What connections need.

    def _greet(self, connection: Connection, content: bytes) -> FrameHandler:
        if content[:1] == INTRODUCTION:
            return self.links.introduced(connection, content)
        return self._greeting.greet(connection, content)

    def _inspect(self) -> dict[str, object]:
        return inspection(self._observed, self._metrics.totals())


def _storage_of(settings: Settings) -> StableStorage | None:
    if settings.storage is not None:
        return settings.storage()
    return None if settings.data is None else DataFolder(settings.data)


def _as_before(settings: Settings, saved: Snapshot) -> Settings:
    """The settings of a server that comes back under its name, and where the others know it."""
    servers = saved.configuration.servers
    known = next(server for server in servers if server.number == saved.number)
    if settings.name not in ("", known.name):
        raise UsageError(
            f"the data in {settings.data} are of the server '{known.name}', not of "
            f"'{settings.name}'; give each server a folder of its own with --data"
        )
    address = parse_server_address(known.address)
    if settings.host != address.host or settings.port not in (0, address.port):
        raise UsageError(
            f"the server '{known.name}', whose data are in {settings.data}, is known to the others "
            f"at {known.address}; listen there, or start it with an empty folder and --join"
        )
    return replace(settings, name=known.name, port=address.port)
