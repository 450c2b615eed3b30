"""The switchboard: between the other servers, the domains that this one is in, and clients.

Packets of other servers go to their domain as they come. At the end of the round of the event
loop, what clients have sent is multicast, what domains have delivered goes to the members that
are connected here, and what domains send goes to the other servers, a frame for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, final

from flexgroup.core.errors import PeerError
from flexgroup.membership.configuration import Configuration
from flexgroup.membership.decision import Casts
from flexgroup.membership.effects import Freeze, Install
from flexgroup.membership.flush import Report
from flexgroup.server.clients.backpressure import Backpressure
from flexgroup.server.clients.confirmations import Confirmations
from flexgroup.server.clients.intake import Intake
from flexgroup.server.clients.members import LocalMembers
from flexgroup.server.hosting.deployment import ComingView, Deployment
from flexgroup.server.hosting.hosted_domain import HostedDomain
from flexgroup.server.hosting.keeping import Keeping
from flexgroup.server.hosting.replicas import Replicas
from flexgroup.server.hosting.round import Round
from flexgroup.server.peers.links import COUNTS, LOGS, PACKETS, REPLICAS, PacketTaker, PeerLinks
from flexgroup.worlds.network.envelope import Envelope
from flexgroup.worlds.network.framed_file import StorageError

REPORT_PATIENCE: Final = 4
"""How many milliseconds longer such a report waits for packets that it can travel with."""

QUICK = 100
"""An answer that comes within so many milliseconds is as quick as stacks expect."""

LONGEST_TICK = 32
"""The most milliseconds that a tick has."""

AHEAD_BYTES: Final = 64 << 20
"""The most that is kept of what comes for a configuration that is not installed here yet."""


@final
class Switchboard(PacketTaker):
    compared: Callable[[int], None]
    """Is told that it is known now what is kept of a group."""
    open_log: Callable[[str, int], None]
    """Has the servers agree that all messages of a group are kept in this domain."""
    storage_failed: Callable[[StorageError], None]
    """Is told that something cannot be kept, so that this server has to end."""

    def __init__(
        self,
        deployment: Deployment,
        round: Round,
        links: PeerLinks,
        intake: Intake,
        members: LocalMembers,
        backpressure: Backpressure,
        confirmations: Confirmations,
        replicas: Replicas,
    ) -> None:
        self._deployment = deployment
        self._round = round
        self._links = links
        self._intake = intake
        self._members = members
        self._backpressure = backpressure
        self._confirmations = confirmations
        self._replicas = replicas
        self._ahead: list[tuple[int, int, int, int, bytes, int]] = []
        self._ahead_bytes = 0
        self._draining: tuple[Casts, Callable[[], None]] | None = None
        """What has to be delivered before a change, and who is told then."""
        self._loop = asyncio.get_running_loop()
        self._timer = DomainTimer(self._end_timers)
        self._report_timer: asyncio.TimerHandle | None = None
        self._has_long_ticks = False
        """Stacks go by ticks that are longer than a millisecond."""
        round.work = self.flush
        links.taker = self

    # From other servers.

    def packets_came(
        self, kind: int, server: int, domain: int, changed: int, data: bytes, at: int
    ) -> None:
        """Packets or counts have come from another server; `at` is where they begin.

        They wait for the configuration that their sender had installed, if the domain comes or
        changes with it: what was sent in a view of a group is delivered in that view.
        """
        if kind != COUNTS:
            self._round.request()
        if kind == REPLICAS:
            self._replicas.came(server, domain, data, at)
            return
        hosted = self._deployment.hosted.get(domain)
        is_ahead = self._deployment.is_ahead(domain) if hosted is None else changed > hosted.changed
        if is_ahead:
            self._ahead_bytes += len(data)
            if self._ahead_bytes > AHEAD_BYTES:
                raise PeerError(
                    f"{self._ahead_bytes} bytes for configurations that are not installed here"
                )
            self._ahead.append((kind, server, domain, changed, data, at))
        if is_ahead or hosted is None or hosted.is_frozen:
            return
        process = hosted.process_of.get(server)
        if process is None:
            raise PeerError(f"server {server} takes no part in domain {domain}")
        if kind == PACKETS:
            hosted.domain.receive(self._round.began, process, data, at)
        elif kind == LOGS:
            self._log_came(hosted, server, data, at)
        else:
            hosted.counted(process, data, at)
            hosted.look_at_window(self._round.now())
            self._intake.cast_held()
            self._confirmations.look()

    def _log_came(self, hosted: HostedDomain, server: int, data: bytes, at: int) -> None:
        """Another server tells of its log of the group of a domain."""
        if hosted.keeping is None:
            raise PeerError(f"server {server} tells of a log that nobody keeps")
        try:
            hosted.keeping.received(server, data, at)
        except StorageError as error:
            self.storage_failed(error)
            return
        self._open_if_ready(hosted, hosted.keeping)

    def _open_if_ready(self, hosted: HostedDomain, keeping: Keeping) -> None:
        """Multicast in a domain whose servers all have the same log, as all servers know."""
        if not hosted.is_closed:
            return
        if keeping.is_stranded:
            self.compared(keeping.group)
        elif keeping.is_open:
            group = hosted.groups[keeping.group]
            if group.epoch == hosted.entry.number:
                hosted.is_closed = False
                self.compared(keeping.group)
                self._intake.cast_held()
                self._confirmations.look()
            elif hosted.process == 0 and not keeping.is_open_proposed:
                keeping.is_open_proposed = True
                self.open_log(group.name, hosted.entry.number)

    # What goes out.

    def flush(self) -> None:
        now = self._round.end()
        self._intake.cast_pack()
        if self._replicas.hosted:
            self._flush_replicas(now)
        self._pass_all_on(now)
        self._round.flush()
        # What could be told before is on its way by now: this may have to wait for the disk.
        if self._replicas.hosted and self._save_replicas():
            self._links.flush()
            self._round.flush()

    def _pass_all_on(self, now: int) -> None:
        """Clients come first, since they wait for it."""
        deployment = self._deployment
        kept: list[HostedDomain] = []
        for hosted in deployment.domains:
            if hosted.keeping is not None and not hosted.is_frozen:
                kept.append(hosted)
                continue
            while hosted.domain.delivered and not hosted.is_frozen:
                for envelope in hosted.take_delivered():
                    self._give(envelope)
        if kept:
            self._pass_kept_on(kept)
        self._confirmations.look()
        self._round.flush()
        reporting = 0
        for hosted in deployment.domains:
            if hosted.is_frozen:
                continue
            self._send_packets(hosted, now)
            if hosted.stability.changed:
                reporting = max(reporting, hosted.report_ticks)
        if reporting and self._report_timer is None:
            self._report_timer = self._loop.call_later(
                (reporting + REPORT_PATIENCE) / 1000, self.report_all
            )
        self._timer.set(deployment.domains, now)
        self._links.flush()
        if self._draining is not None:
            self._see_whether_drained()

    def _flush_replicas(self, now: int) -> None:
        try:
            self._replicas.flush(now)
        except StorageError as error:
            self.storage_failed(error)

    def _save_replicas(self) -> bool:
        try:
            return self._replicas.save()
        except StorageError as error:
            self.storage_failed(error)
            return False

    def _give(self, envelope: Envelope) -> None:
        """Give members the messages of an envelope, or tell them of the view that it marks."""
        if envelope.count:
            self._members.deliver(envelope)
        else:
            self._show(self._deployment.take_view(envelope))

    def _show(self, views: list[ComingView]) -> None:
        for view in views:
            self._members.show(view.group, self._deployment.me)
            for then in view.then:
                # What follows may change what is delivered here.
                self._loop.call_soon(then)

    def _pass_kept_on(self, domains: list[HostedDomain]) -> None:
        """What groups keep is on the disk before anybody is told that it is here; one time of
        waiting for that is enough for all of them."""
        written: list[Keeping] = []
        try:
            for hosted in domains:
                if hosted.keeping is not None and hosted.domain.delivered:
                    hosted.keeping.append(hosted.take_delivered())
                    written.append(hosted.keeping)
            if written:
                self._deployment.commit()
        except StorageError as error:
            self.storage_failed(error)
            return
        for keeping in written:
            keeping.committed()
        for hosted in domains:
            if hosted.keeping is not None:
                for envelope in hosted.keeping.take_given():
                    self._members.deliver(envelope)

    def _send_packets(self, hosted: HostedDomain, now: int) -> None:
        """Send them, and with them how far this server is, if that was not told lately."""
        if hosted.keeping is not None:
            self._send_logs(hosted, hosted.keeping)
        outgoing = hosted.domain.outgoing
        is_sending = False
        for process, data in enumerate(outgoing):
            if data:
                is_sending = True
                self._links.gather(hosted.servers[process], hosted.packets_head, data)
                outgoing[process] = bytearray()
        if is_sending and hosted.stability.changed and now - hosted.reported >= hosted.report_ticks:
            self._report(hosted, now)

    def _send_logs(self, hosted: HostedDomain, keeping: Keeping) -> None:
        outgoing, keeping.outgoing = keeping.outgoing, []
        for server, data in outgoing:
            self._links.gather(server, hosted.logs_head, data)

    def report_all(self) -> None:
        """Tell the other servers how far this one is, in all domains."""
        self._report_timer = None
        now = self._round.now()
        for hosted in self._deployment.domains:
            if not hosted.is_frozen:
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
        hosted.look_at_window(now)
        self._intake.cast_held()
        self._confirmations.look()

    def look_at_links(self) -> None:
        """Let the ticks of a stack be longer while its packets wait here: it would otherwise send
        again what has not even left, and everything would wait the longer for that."""
        waits = self._links.waits()
        if not waits and not self._has_long_ticks:
            return
        self._has_long_ticks = False
        for hosted in self._deployment.domains:
            longest = max([waits.get(server, 0.0) for server in hosted.servers])
            tick = max(1, int(2000 * longest / QUICK), hosted.domain.tick * 15 // 16)
            hosted.domain.tick = min(LONGEST_TICK, tick)
            self._has_long_ticks = self._has_long_ticks or tick > 1

    def _end_timers(self) -> None:
        now = self._round.now()
        self._intake.cast_pack()
        for hosted in self._deployment.domains:
            if not hosted.is_frozen:
                hosted.domain.end_timers(now)
        self._pass_all_on(now)

    # Changes of configuration.

    def freeze(self, effect: Freeze) -> Report:
        """Stop what a change concerns, and tell what was delivered and multicast there."""
        self.flush()
        while self._intake.is_packing:
            # A report has made room for what was held. Multicast after this, it would be lost:
            # nobody would know of it.
            self.flush()
        return self._deployment.freeze(effect)

    def drain(self, casts: Casts, drained: Callable[[], None]) -> None:
        """Have it told when all of this is delivered here that is to be."""
        self._draining = casts, drained
        self._see_whether_drained()

    def _see_whether_drained(self) -> None:
        assert self._draining is not None
        casts, drained = self._draining
        if self._deployment.is_drained(casts):
            self._draining = None
            drained()

    def install(self, effect: Install) -> None:
        """End what the change ends, and go on with what it brings."""
        deployment = self._deployment
        configuration = effect.configuration
        self._draining = None
        for envelope in deployment.finish(configuration, effect.flush, effect.restarted):
            self._give(envelope)
        self._show(deployment.take_unmarked(configuration))
        for hosted in deployment.domains:
            if hosted.keeping is not None and hosted.keeping.was_open:
                self._members.read_from(hosted.keeping.group, hosted.keeping.given + 1)
        self._members.follow(deployment.configuration, configuration, effect.number)
        self._replicas.install(deployment.configuration, configuration)
        deployment.install(
            configuration,
            effect.number,
            effect.casts,
            self._round.now(),
            effect.is_restarted,
            effect.stands_still,
            effect.is_apart,
        )
        for hosted in deployment.domains:
            if hosted.keeping is not None:
                self._open_if_ready(hosted, hosted.keeping)
        ahead, self._ahead, self._ahead_bytes = self._ahead, [], 0
        for kind, server, domain, changed, data, at in ahead:
            self.packets_came(kind, server, domain, changed, data, at)
        self._intake.cast_held()
        self._round.request()

    def part(self, alone: Configuration, reason: str) -> None:
        """The server has left the others: of its groups it keeps these, and all others end."""
        deployment = self._deployment
        for hosted in deployment.domains:
            hosted.is_frozen = hosted.is_frozen or not hosted.entry.partitionable
        self.flush()
        self._show(deployment.take_unmarked(alone))
        self._members.follow(deployment.configuration, alone, deployment.me, reason)
        self._rest()
        deployment.part(alone)

    def finish(self) -> None:
        """The server has left the others: nothing more is delivered."""
        self._rest()
        self._deployment.clear()

    def _rest(self) -> None:
        self._timer.cancel()
        self._draining = None
        self._ahead, self._ahead_bytes = [], 0


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
            end = None if hosted.is_frozen else hosted.domain.earliest_timer()
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
