"""One server as the explorer hosts it: the membership machine and the domains of a real server.

What a real server does with effects, packets and deliveries is done here at once, in the same
order: what the stacks have to say goes out before a change stops them.
"""

from __future__ import annotations

from dataclasses import dataclass

from flexgroup.core.errors import PeerError
from flexgroup.membership.configuration import Configuration, DomainEntry
from flexgroup.membership.decision import Decision
from flexgroup.membership.effects import (
    Answer,
    Connect,
    Disconnect,
    Drain,
    Effect,
    Excluded,
    Freeze,
    Install,
    Save,
    SendOn,
    SendTo,
)
from flexgroup.membership.machine import Membership
from flexgroup.membership.messages import Admitted, ControlMessage
from flexgroup.membership.operations import Renew
from flexgroup.membership.stable import Snapshot, recovered
from flexgroup.membership.suspicion import may_continue
from flexgroup.membership.timings import Timings
from flexgroup.membership_explorer.scope import TIMINGS, ClusterScope
from flexgroup.server.hosting.deployment import Deployment
from flexgroup.server.hosting.hosted_domain import HostedDomain
from flexgroup.worlds.network.envelope import Envelope
from flexgroup.worlds.network.faults import Faults

MILLISECONDS = 1000
"""A beat in the time of the stacks: longer than any of their timers."""

Era = tuple[int, int, int]
"""A group, its view, and its domain: whoever goes on to the next has delivered the same in it."""


@dataclass(frozen=True)
class Frame:
    """What one server sends to another for a domain: packets, or counts of what is delivered."""

    domain: int
    changed: int
    """The configuration in which a group of the domain has changed last, at the sender."""
    data: bytes
    is_counts: bool = False


Item = ControlMessage | Frame


@dataclass(frozen=True)
class Cast:
    """A client has multicast the message of this action of the scope."""

    action: int
    destinations: tuple[int, ...]
    """The servers with members of its groups then."""


@dataclass(frozen=True)
class Delivery:
    action: int
    eras: tuple[Era, ...]
    """Those of the groups of the message that have members here."""


@dataclass(frozen=True)
class DeliveryAlone:
    """The server has delivered something although it had heard too few others for so long that
    these may have gone on without it."""

    action: int


@dataclass(frozen=True)
class Installed:
    configuration: Configuration
    eras: tuple[Era, ...]
    """Those of the groups with members here, as members know them."""


@dataclass(frozen=True)
class Marked:
    """Members are told of a view where its mark was delivered."""

    eras: tuple[Era, ...]


@dataclass(frozen=True)
class Restarted:
    """The server has come back, with nothing but the data that it keeps."""


@dataclass(frozen=True)
class Ended:
    """The server has been excluded."""

    reason: str


@dataclass(frozen=True)
class Failed:
    """A handler has raised, which it never should."""

    error: str


Entry = Cast | Delivery | DeliveryAlone | Installed | Marked | Restarted | Ended | Failed


def no_recorder(configuration: Configuration, domain: DomainEntry) -> None:
    """Nothing is recorded: every server keeps its own log."""


def no_clock() -> int:
    return 0


class ExploredServer:
    """A server, which is told what happens and says what it sends."""

    def __init__(self, scope: ClusterScope, number: int, timings: Timings = TIMINGS) -> None:
        self.scope = scope
        self.number = number
        self._timings = timings
        self._saved: Snapshot | None = None
        """What it keeps on stable storage."""
        self.log: list[Entry] = []
        """What is to be remembered of it; taken after each event, like what it sends."""
        self.sent: list[tuple[int, Item]] = []
        self.now = 0.0
        self._begin()

    def _begin(self) -> None:
        """Have nothing but what is saved."""
        server = self.scope.configuration.servers[self.number - 1]
        self.membership = Membership(
            server.name, server.address, self._timings, self.scope.keeps_data
        )
        self.deployment = Deployment(Faults(), no_recorder, no_clock)
        self.unanswered: set[int] = set()
        """The tickets of requests that are not answered."""
        self._heard_at: dict[int, float] = {}
        self._gone: set[int] = set()
        self._connected: set[int] = set()
        self._ahead: list[tuple[int, Frame]] = []
        self._draining: Drain | None = None

    # What happens.

    def start(self, now: float) -> None:
        self.now = now
        first = self.scope.configuration
        admitted = Admitted(self.number, first, Decision(first.number))
        self.membership.received(0, None, admitted, now)
        self._settle()

    def restart(self, now: float) -> None:
        """Come back after a crash."""
        assert self._saved is not None
        self.now = now
        self._begin()
        self.log.append(Restarted())
        self.membership.restore(self._saved, now)
        self._settle()

    def receive(self, sender: int, item: Item, now: float) -> None:
        self.now = now
        self._heard_at[sender] = now
        self._gone.discard(sender)
        if isinstance(item, Frame):
            self.membership.heard(sender, now)
            self._take(sender, item)
        else:
            self.membership.received(sender, sender, item, now)
        self._settle()

    def tick(self, now: float) -> None:
        """A beat of time has passed: timers of the stacks have run out, and counts are told."""
        self.now = now
        for hosted in self.deployment.domains:
            if not hosted.is_frozen:
                hosted.domain.end_timers(self._milliseconds)
                self._pass_on(hosted)
                self._tell_counts(hosted)
        self.membership.tick(now)
        self._settle()

    def link_gone(self, server: int, now: float) -> None:
        """The machine of another server says that its process is dead."""
        self.now = now
        self._gone.add(server)
        self.membership.link_lost(server, True, now)
        self._settle()

    def link_replaced(self, server: int, now: float) -> None:
        self.now = now
        self.membership.propose(Renew(server), now)
        self._settle()

    def may_act(self, place: int) -> bool:
        """Whether the action at this place of the scope is possible now."""
        action = self.scope.actions[place]
        if self.membership.ended:
            return False
        if action.kind != "cast":
            return True
        groups = self._groups_of(place)
        if len(groups) < len(action.groups):
            return False
        hosted = self.deployment.domain_of.get(groups[0])
        return hosted is not None and not self.deployment.is_stopped(hosted, groups)

    def act(self, place: int, now: float) -> None:
        self.now = now
        action = self.scope.actions[place]
        if action.kind == "cast":
            self._cast(place)
        else:
            self.unanswered.add(self.membership.propose(action.operation(), now))
        self._settle()

    def state(self) -> tuple[object, ...]:
        """All that decides on what it does next."""
        return (
            self.membership,
            self.deployment,
            self.unanswered,
            self._saved,
            self._heard_at,
            self._gone,
            self._connected,
            self._ahead,
            self._draining,
        )

    # What the stacks do.

    @property
    def _milliseconds(self) -> int:
        return int(self.now * MILLISECONDS)

    def _groups_of(self, place: int) -> tuple[int, ...]:
        named = self.deployment.configuration.group_named
        names = self.scope.actions[place].groups
        return tuple(sorted(named[name].number for name in names if name in named))

    def _cast(self, place: int) -> None:
        numbers = self._groups_of(place)
        groups = [self.deployment.configuration.group_numbered[number] for number in numbers]
        servers = {server for group in groups for server in group.servers}
        self.log.append(Cast(place, tuple(sorted(servers))))
        hosted = self.deployment.domain_of[numbers[0]]
        hosted.cast(self._milliseconds, numbers, 1, bytes([place]))

    def is_ahead(self, frame: Frame, hosted: HostedDomain | None) -> bool:
        """Whether its sender has installed a configuration that this server has not."""
        if hosted is None:
            return frame.domain >= self.deployment.configuration.next_domain
        return frame.changed > hosted.changed

    def _take(self, sender: int, frame: Frame) -> None:
        hosted = self.deployment.hosted.get(frame.domain)
        if self.is_ahead(frame, hosted):
            self._ahead.append((sender, frame))
        elif hosted is not None and not hosted.is_frozen:
            process = hosted.process_of.get(sender)
            if process is None:
                raise PeerError(f"server {sender} takes no part in domain {frame.domain}")
            if frame.is_counts:
                hosted.counted(process, frame.data, 0)
            else:
                hosted.domain.receive(self._milliseconds, process, frame.data, 0)

    def _pass_on(self, hosted: HostedDomain) -> None:
        """Give members what the stack has delivered, and send what it sends."""
        while not hosted.is_frozen and (
            hosted.domain.delivered or hosted.domain.end_timers(self._milliseconds)
        ):
            for envelope in hosted.take_delivered():
                self._deliver(envelope)
                if envelope.count and not self._may_deliver():
                    self.log.append(DeliveryAlone(envelope.contents[0]))
        if hosted.is_frozen:
            return
        for process, data in enumerate(hosted.domain.outgoing):
            if data:
                hosted.domain.outgoing[process] = bytearray()
                frame = Frame(hosted.entry.number, hosted.changed, bytes(data))
                self._send(hosted.servers[process], frame)

    def _tell_counts(self, hosted: HostedDomain) -> None:
        counts = hosted.counts(set())
        if counts:
            frame = Frame(hosted.entry.number, hosted.changed, counts, is_counts=True)
            for server in hosted.servers:
                if server != self.number:
                    self._send(server, frame)

    def _deliver(self, envelope: Envelope) -> None:
        """Give it to the members that are connected here."""
        if not envelope.count:
            if self.deployment.take_view(envelope):
                self.log.append(Marked(self._eras()))
            return
        numbers = [number for number, _ in envelope.groups]
        eras = tuple([era for era in self._eras() if era[0] in numbers])
        if eras:
            self.log.append(Delivery(envelope.contents[0], eras))

    def _eras(self) -> tuple[Era, ...]:
        """Those of the groups with members here, as members know them."""
        deployment = self.deployment
        eras = []
        for entry in deployment.configuration.groups:
            group = deployment.seen(entry.number)
            hosted = deployment.domain_of.get(entry.number)
            if group is not None and hosted is not None and self.number in group.servers:
                eras.append((group.number, group.view, hosted.entry.number))
        return tuple(eras)

    def _may_deliver(self) -> bool:
        """Whether it has heard of enough others since they could have gone on without it."""
        servers = [server.number for server in self.deployment.configuration.servers]
        lately = self.now - self._timings.patience
        heard = [s for s in servers if s == self.number or self._heard_at.get(s, 0.0) > lately]
        return may_continue(heard, servers, self._gone)

    # What membership asks for.

    def _settle(self) -> None:
        """Do all that is to be done now."""
        while True:
            for hosted in self.deployment.domains:
                self._pass_on(hosted)
            if self._draining is not None and self.deployment.is_drained(self._draining.casts):
                drain, self._draining = self._draining, None
                self.membership.drained(drain, self.now)
            effects = self.membership.take_effects()
            if not effects:
                break
            for effect in effects:
                self._do(effect)

    def _do(self, effect: Effect) -> None:
        match effect:
            case SendTo():
                self._send(effect.server, effect.message)
            case SendOn():
                if effect.link is not None:
                    self.sent.append((effect.link, effect.message))
            case Connect():
                self._connected.add(effect.server.number)
            case Disconnect():
                self._connected.discard(effect.number)
            case Freeze():
                for hosted in self.deployment.domains:
                    self._pass_on(hosted)
                report = self.deployment.freeze(effect)
                self.membership.frozen(effect, report, self.now)
            case Save():
                record = effect.record
                if isinstance(record, Snapshot):
                    self._saved = record
                elif self._saved is not None:
                    self._saved = recovered(self._saved, [record])
            case Drain():
                self._draining = effect
            case Install():
                self._install(effect)
            case Answer():
                self.unanswered.discard(effect.ticket)
            case Excluded():
                self.deployment.clear()
                self._draining = None
                self.log.append(Ended(effect.reason))

    def _install(self, effect: Install) -> None:
        deployment = self.deployment
        self._draining = None
        for hosted in deployment.domains:
            self._pass_on(hosted)
        for envelope in deployment.finish(effect.configuration, effect.flush, effect.restarted):
            self._deliver(envelope)
        if deployment.take_unmarked(effect.configuration):
            self.log.append(Marked(self._eras()))
        deployment.install(
            effect.configuration,
            effect.number,
            effect.casts,
            self._milliseconds,
            effect.is_restarted,
        )
        self.log.append(Installed(effect.configuration, self._eras()))
        ahead, self._ahead = self._ahead, []
        for sender, frame in ahead:
            self._take(sender, frame)

    def _send(self, server: int, item: Item) -> None:
        if server in self._connected:
            self.sent.append((server, item))
