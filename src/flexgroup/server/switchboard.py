"""The switchboard: between clients and the domains of the configuration that is installed.

Everything that arrives while the event loop makes one round is handled first; then what has
gathered goes out, a frame for each connection. So nothing waits when there is little to do, and
many messages share a frame when there is much.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, final

from flexgroup.core.errors import PeerError
from flexgroup.membership.configuration import Configuration, GroupEntry
from flexgroup.membership.flush import DomainFlush, DomainReport
from flexgroup.server.backpressure import Backpressure
from flexgroup.server.contents import opened, packed
from flexgroup.server.deployment import HostedDomain, Recording, deploy
from flexgroup.server.intake import Intake
from flexgroup.server.limits import Limits
from flexgroup.server.link import PACKETS, Link
from flexgroup.server.session import Seat, Session
from flexgroup.wire.requests import Joined
from flexgroup.worlds.network.envelope import Envelope
from flexgroup.worlds.network.faults import Faults

REPORT_TICKS = 16
"""Milliseconds between the words of how far this server is that travel with packets."""

REPORT_SECONDS = 0.02
"""How long that word waits at the most for packets to travel with."""

AHEAD_BYTES = 64 << 20
"""The most that is kept of what comes for a configuration that is not installed here yet."""


class Wires(Protocol):
    """The links to the other servers."""

    links: dict[int, Link]
    """By the number of the server at the other end."""

    def hold(self, server: int, head: bytes, data: bytes | bytearray) -> None:
        """Until there is a link to this server."""


@final
class Switchboard:
    def __init__(
        self,
        wires: Wires,
        limits: Limits,
        faults: Faults,
        recording: Callable[[Configuration], Recording],
        excluded: Callable[[Session, str], None],
    ) -> None:
        self.sessions: dict[int, Session] = {}
        self.domains: list[HostedDomain] = []
        self.configuration: Configuration | None = None
        self.frozen = True
        self._wires = wires
        self._faults = faults
        self._recording = recording
        self._me = -1
        self.domain_of: dict[int, HostedDomain] = {}
        self._local: dict[int, list[tuple[Session, Seat]]] = {}
        """The members of each group that are connected here."""
        self._dirty: list[Session] = []
        self.intake = Intake(self, limits)
        self._ahead: list[tuple[int, int, int, int, bytes, int]] = []
        self._ahead_bytes = 0
        self.backpressure = Backpressure(limits, self.sessions, self._report_all, excluded)
        self._loop = asyncio.get_running_loop()
        self._flush_is_due = False
        self._turn = 0
        """When the round began that the event loop makes, if a flush is due at its end."""
        self._has_gathered = False
        """Links have something to be flushed."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ends = 0
        self._timers_end = False
        """Some have run out, and stacks are told so after the next round of the event loop."""
        self._report_timer: asyncio.TimerHandle | None = None

    def now(self) -> int:
        return int(self._loop.time() * 1000)

    # From other servers.

    def came(
        self, kind: int, server: int, configuration: int, domain: int, data: bytes, at: int
    ) -> None:
        """Packets or counts."""
        hosted = self._current(kind, server, configuration, domain, data, at)
        if hosted is None:
            return
        process = hosted.process_of[server]
        if kind == PACKETS:
            self.to_be_flushed_soon()
            hosted.domain.receive(self._turn, process, data, at)
        else:
            hosted.counted(process, data, at)
            self.intake.cast_held()

    def _current(
        self, kind: int, server: int, configuration: int, domain: int, data: bytes, at: int
    ) -> HostedDomain | None:
        """The domain that is meant, unless its configuration is over or still to come."""
        installed = self.configuration.number if self.configuration is not None else 0
        if configuration > installed:
            self._ahead_bytes += len(data)
            if self._ahead_bytes > AHEAD_BYTES:
                raise PeerError(
                    f"{self._ahead_bytes} bytes for configurations that are not installed here"
                )
            self._ahead.append((kind, server, configuration, domain, data, at))
            return None
        if configuration < installed or self.frozen:
            return None
        if domain >= len(self.domains):
            raise PeerError(f"packets for domain {domain}; there are {len(self.domains)}")
        hosted = self.domains[domain]
        if server not in hosted.process_of:
            return None
        return hosted

    # What goes out.

    def to_be_flushed(self, session: Session) -> None:
        self._dirty.append(session)
        self.to_be_flushed_soon()

    def to_be_flushed_soon(self) -> None:
        if not self._flush_is_due:
            self._flush_is_due = True
            self._turn = self.now()
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        now = self._turn if self._flush_is_due else self.now()
        self._flush_is_due = False
        if not self.frozen:
            self.intake.cast_pack()
            self._pass_all_on(now)
        self._flush_sessions()

    def _pass_all_on(self, now: int) -> None:
        """First to clients, who wait for it."""
        for hosted in self.domains:
            self._deliver_all(hosted)
        self._flush_sessions()
        self._flush_domains(now)

    def _flush_sessions(self) -> None:
        if self._dirty:
            dirty, self._dirty = self._dirty, []
            for session in dirty:
                session.flush()

    def _flush_domains(self, now: int) -> None:
        reporting = False
        for hosted in self.domains:
            self._send_packets(hosted, now)
            reporting = reporting or bool(hosted.stability.changed)
        if reporting and self._report_timer is None:
            self._report_timer = self._loop.call_later(REPORT_SECONDS, self._report_all)
        self._set_timer(now)
        self._flush_links()

    def _flush_links(self) -> None:
        if not self._has_gathered:
            return
        self._has_gathered = False
        for link in self._wires.links.values():
            if link.gathered:
                link.flush()

    def _pass_on(self, server: int, head: bytes, data: bytes | bytearray) -> None:
        """Goes out when links are flushed."""
        link = self._wires.links.get(server)
        if link is None:
            self._wires.hold(server, head, data)
        else:
            link.gathered.append((head, data))
            self._has_gathered = True

    def _deliver_all(self, hosted: HostedDomain) -> None:
        while hosted.domain.delivered:
            for envelope in hosted.take_delivered():
                self._deliver(envelope)

    def _send_packets(self, hosted: HostedDomain, now: int) -> None:
        """And, with them, how far this server is, if that was not told lately."""
        outgoing = hosted.domain.outgoing
        is_sending = False
        for process, data in enumerate(outgoing):
            if data:
                is_sending = True
                self._pass_on(hosted.servers[process], hosted.packets_head, data)
                outgoing[process] = bytearray()
        if is_sending and hosted.stability.changed and now - hosted.reported >= REPORT_TICKS:
            self._report(hosted, now)

    def _report_all(self) -> None:
        self._report_timer = None
        if not self.frozen:
            now = self.now()
            for hosted in self.domains:
                self._report(hosted, now)
            self._flush_links()

    def _report(self, hosted: HostedDomain, now: int) -> None:
        hosted.reported = now
        counts = hosted.counts(self.backpressure.held_up(hosted.groups))
        if not counts:
            return
        for server in hosted.servers:
            if server != self._me:
                self._pass_on(server, hosted.counts_head, counts)
        self.intake.cast_held()

    def _set_timer(self, now: int) -> None:
        earliest = None
        for hosted in self.domains:
            end = hosted.domain.earliest_timer()
            if end is not None and (earliest is None or end < earliest):
                earliest = end
        if earliest is None:
            return
        if earliest <= now:
            if not self._timers_end:
                self._timers_end = True
                self._loop.call_soon(self._end_timers)
            return
        if self._timer is not None and self._timer_ends <= earliest:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ends = earliest
        self._timer = self._loop.call_later((earliest - now) / 1000, self._timer_ended)

    def _timer_ended(self) -> None:
        self._timer = None
        self._end_timers()

    def _end_timers(self) -> None:
        """After one more look at the connections: what has come meanwhile may be what a stack
        would otherwise send a null message for."""
        self._timers_end = False
        if self.frozen:
            return
        now = self.now()
        self.intake.cast_pack()
        for hosted in self.domains:
            hosted.domain.end_timers(now)
        self._pass_all_on(now)

    def _deliver(self, envelope: Envelope) -> None:
        seen: set[int] = set()
        several = len(envelope.groups) > 1
        for group, _ in envelope.groups:
            for session, seat in self._local.get(group, ()):
                if several:
                    if session.number in seen:
                        continue
                    seen.add(session.number)
                if seat.own:
                    session.deliver(seat, envelope.count, envelope.contents)
                else:
                    self._deliver_others(session, seat, envelope)

    def _deliver_others(self, session: Session, seat: Seat, envelope: Envelope) -> None:
        """Without what the member sent itself."""
        others = [m for m in opened(envelope.contents) if m[0] != seat.process]
        if others:
            session.deliver(seat, len(others), packed(others))

    # Changes of configuration.

    def freeze(self) -> list[DomainReport]:
        """Stop the domains, and tell what they have delivered."""
        if not self.frozen:
            self.flush()
        self.frozen = True
        return [hosted.report() for hosted in self.domains]

    def install(
        self,
        configuration: Configuration,
        me: int,
        leftovers: list[DomainFlush],
    ) -> None:
        """Finish the configuration that was, and start the next."""
        left_over = {rest.stack: rest for rest in leftovers}
        for hosted in self.domains:
            rest = left_over.get(hosted.stack)
            for envelope in hosted.finish(rest):
                self._deliver(envelope)
            hosted.domain.record_view(
                tuple(
                    process
                    for process, server in enumerate(hosted.servers)
                    if any(server == other.number for other in configuration.servers)
                ),
                1,
            )
        before = self.configuration
        self.configuration = configuration
        self._me = me
        self._seat_members(before, configuration)
        recording = self._recording(configuration)
        self.domains = deploy(configuration, me, self._faults, recording)
        self.domain_of = {group: hosted for hosted in self.domains for group in hosted.groups}
        self.frozen = False
        now = self.now()
        for hosted in self.domains:
            hosted.start(now)
        ahead, self._ahead, self._ahead_bytes = self._ahead, [], 0
        for kind, server, number, domain, data, at in ahead:
            self.came(kind, server, number, domain, data, at)
        self.intake.cast_held()
        self.to_be_flushed_soon()

    def _seat_members(self, before: Configuration | None, after: Configuration) -> None:
        """Tell local members what has changed in their groups, each in its place."""
        old = {group.number: group for group in before.groups} if before is not None else {}
        local: dict[int, list[tuple[Session, Seat]]] = {}
        for group in after.groups:
            changed = group.number not in old or old[group.number].view != group.view
            names = [member.process for member in group.members]
            here: list[tuple[Session, Seat]] = []
            for member in group.members:
                session = self.sessions.get(member.client) if member.server == self._me else None
                if session is None:
                    continue
                seat = session.seats.get(group.number)
                if seat is None or not seat.member:
                    request, _, own = session.joining.pop(group.name, (0, "", True))
                    seat = Seat(group.number, group.name, member.process, True, own)
                    session.sit(seat, Joined(request, group.number, group.view, names, group.stack))
                elif changed:
                    session.tell_view(seat, group.view, names)
                here.append((session, seat))
            if here:
                local[group.number] = here
        present = {group.number for group in after.groups}
        for number, members in self._local.items():
            seated = {id(seat) for _, seat in local.get(number, ())}
            for session, seat in members:
                if id(seat) not in seated:
                    if number not in present:
                        session.end_seat(seat, "the group was destroyed")
                    else:
                        session.leave_seat(number)
        self._local = local

    def finish(self, reason: str) -> None:
        """The server leaves the others: nothing more is delivered."""
        self.frozen = True
        if self._timer is not None:
            self._timer.cancel()
        for session in list(self.sessions.values()):
            session.close(reason)

    def group(self, name: str) -> GroupEntry | None:
        if self.configuration is None:
            return None
        for group in self.configuration.groups:
            if group.name == name:
                return group
        return None

    def is_done(self) -> bool:
        """Whether all that clients have sent is delivered everywhere."""
        return not (
            self.frozen
            or self.intake.is_holding
            or any(hosted.stability.own for hosted in self.domains)
        )

    def is_owner(self, session: Session) -> bool:
        """Of a group that it created and that still exists."""
        groups = self.configuration.groups if self.configuration is not None else ()
        return any(group.owner_at == (self._me, session.number) for group in groups)

    def session_ended(self, session: Session) -> None:
        self.sessions.pop(session.number, None)
        for seat in list(session.seats.values()):
            session.leave_seat(seat.group)
        for group, members in list(self._local.items()):
            left = [(other, seat) for other, seat in members if other is not session]
            if len(left) != len(members):
                self._local[group] = left
