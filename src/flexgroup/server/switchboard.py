"""The switchboard: between the other servers, the domains of the configuration, and clients.

Packets of other servers go to their domain as they come. At the end of the round of the event
loop, what clients have sent is multicast, what domains have delivered goes to the members that
are connected here, and what domains send goes to the other servers, a frame for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import final

from flexgroup.core.errors import PeerError
from flexgroup.membership.configuration import Configuration
from flexgroup.membership.flush import DomainFlush, DomainReport
from flexgroup.server.clients.backpressure import Backpressure
from flexgroup.server.clients.intake import Intake
from flexgroup.server.clients.members import LocalMembers
from flexgroup.server.hosting.deployment import Deployment, HostedDomain
from flexgroup.server.hosting.round import Round
from flexgroup.server.peers.links import PACKETS, PeerLinks

REPORT_TICKS = 16
"""Servers tell with their packets how far they are, at most once in so many milliseconds."""

REPORT_SECONDS = 0.02
"""How long such a report waits, at most, for packets that it can travel with."""

AHEAD_BYTES = 64 << 20
"""The most that is kept of what comes for a configuration that is not installed here yet."""


@final
class Switchboard:
    def __init__(
        self,
        deployment: Deployment,
        round: Round,
        links: PeerLinks,
        intake: Intake,
        members: LocalMembers,
        backpressure: Backpressure,
    ) -> None:
        self._deployment = deployment
        self._round = round
        self._links = links
        self._intake = intake
        self._members = members
        self._backpressure = backpressure
        self._ahead: list[tuple[int, int, int, int, bytes, int]] = []
        self._ahead_bytes = 0
        self._loop = asyncio.get_running_loop()
        self._timer = DomainTimer(self._end_timers)
        self._report_timer: asyncio.TimerHandle | None = None
        round.work = self.flush
        links.packets_came = self._packets_came

    # From other servers.

    def _packets_came(
        self, kind: int, server: int, configuration: int, domain: int, data: bytes, at: int
    ) -> None:
        """Packets or counts have come from another server; `at` is where they begin."""
        hosted = self._current(kind, server, configuration, domain, data, at)
        if hosted is None:
            return
        process = hosted.process_of[server]
        if kind == PACKETS:
            self._round.request()
            hosted.domain.receive(self._round.began, process, data, at)
        else:
            hosted.counted(process, data, at)
            self._intake.cast_held()

    def _current(
        self, kind: int, server: int, configuration: int, domain: int, data: bytes, at: int
    ) -> HostedDomain | None:
        """The domain that is meant, unless its configuration is over or still to come."""
        deployment = self._deployment
        if configuration > deployment.number:
            self._ahead_bytes += len(data)
            if self._ahead_bytes > AHEAD_BYTES:
                raise PeerError(
                    f"{self._ahead_bytes} bytes for configurations that are not installed here"
                )
            self._ahead.append((kind, server, configuration, domain, data, at))
            return None
        if configuration < deployment.number or deployment.frozen:
            return None
        domains = deployment.domains
        if domain >= len(domains):
            raise PeerError(f"packets for domain {domain}; there are {len(domains)}")
        hosted = domains[domain]
        if server not in hosted.process_of:
            return None
        return hosted

    # What goes out.

    def flush(self) -> None:
        now = self._round.end()
        if not self._deployment.frozen:
            self._intake.cast_pack()
            self._pass_all_on(now)
        self._round.flush()

    def _pass_all_on(self, now: int) -> None:
        """Clients come first, since they wait for it."""
        deployment = self._deployment
        for hosted in deployment.domains:
            while hosted.domain.delivered:
                for envelope in hosted.take_delivered():
                    self._members.deliver(envelope)
        self._round.flush()
        reporting = False
        for hosted in deployment.domains:
            self._send_packets(hosted, now)
            reporting = reporting or bool(hosted.stability.changed)
        if reporting and self._report_timer is None:
            self._report_timer = self._loop.call_later(REPORT_SECONDS, self.report_all)
        self._timer.set(deployment.domains, now)
        self._links.flush()

    def _send_packets(self, hosted: HostedDomain, now: int) -> None:
        """Send them, and with them how far this server is, if that was not told lately."""
        outgoing = hosted.domain.outgoing
        is_sending = False
        for process, data in enumerate(outgoing):
            if data:
                is_sending = True
                self._links.gather(hosted.servers[process], hosted.packets_head, data)
                outgoing[process] = bytearray()
        if is_sending and hosted.stability.changed and now - hosted.reported >= REPORT_TICKS:
            self._report(hosted, now)

    def report_all(self) -> None:
        """Tell the other servers how far this one is, in all domains."""
        self._report_timer = None
        if not self._deployment.frozen:
            now = self._round.now()
            for hosted in self._deployment.domains:
                self._report(hosted, now)
            self._links.flush()

    def _report(self, hosted: HostedDomain, now: int) -> None:
        hosted.reported = now
        counts = hosted.counts(self._backpressure.held_up(hosted.groups))
        if not counts:
            return
        for process, server in enumerate(hosted.servers):
            if process != hosted.process:
                self._links.gather(server, hosted.counts_head, counts)
        self._intake.cast_held()

    def _end_timers(self) -> None:
        if self._deployment.frozen:
            return
        now = self._round.now()
        self._intake.cast_pack()
        for hosted in self._deployment.domains:
            hosted.domain.end_timers(now)
        self._pass_all_on(now)

    # Changes of configuration.

    def freeze(self) -> list[DomainReport]:
        """Stop the domains, and tell what they have delivered."""
        if not self._deployment.frozen:
            self.flush()
        self._deployment.frozen = True
        return [hosted.report() for hosted in self._deployment.domains]

    def install(self, configuration: Configuration, me: int, flush: list[DomainFlush]) -> None:
        """Finish the configuration that was, and start the next."""
        deployment = self._deployment
        unflushed = {rest.stack: rest for rest in flush}
        for hosted in deployment.domains:
            for envelope in hosted.finish(unflushed.get(hosted.stack), configuration):
                self._members.deliver(envelope)
        self._members.follow(deployment.configuration, configuration, me)
        deployment.install(configuration, me, self._round.now())
        ahead, self._ahead, self._ahead_bytes = self._ahead, [], 0
        for kind, server, number, domain, data, at in ahead:
            self._packets_came(kind, server, number, domain, data, at)
        self._intake.cast_held()
        self._round.request()

    def finish(self) -> None:
        """The server has left the others: nothing more is delivered."""
        self._timer.cancel()
        self._ahead, self._ahead_bytes = [], 0
        self._deployment.clear()


@final
class DomainTimer:
    """The timer of the event loop for the earliest timer of all domains."""

    def __init__(self, ended: Callable[[], None]) -> None:
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None
        self._end = 0
        self._is_over = False
        """Some have run out, and stacks are told so after the next round of the event loop."""

    def set(self, domains: list[HostedDomain], now: int) -> None:
        earliest = None
        for hosted in domains:
            end = hosted.domain.earliest_timer()
            if end is not None and (earliest is None or end < earliest):
                earliest = end
        if earliest is None:
            return
        if earliest <= now:
            # After one more look at the connections: what has come meanwhile may be what a
            # stack would otherwise send a null message for.
            if not self._is_over:
                self._is_over = True
                self._loop.call_soon(self._run_out)
            return
        if self._handle is not None and self._end <= earliest:
            return
        self.cancel()
        self._end = earliest
        self._handle = self._loop.call_later((earliest - now) / 1000, self._run_out)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _run_out(self) -> None:
        self.cancel()
        self._is_over = False
        self._ended()
