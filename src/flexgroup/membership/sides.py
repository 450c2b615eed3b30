"""Views of partitionable groups among servers that stand still: a side of the cluster.

Servers that stand still tell each other so. The oldest of those that hear each other leads: when
who is there differs from the view, or somebody wants to join or leave, it asks all for what they
have (`Gather`), and tells them the view that this makes (`Formed`). There is no majority and no
consensus. Whoever misses `Formed` comes from its older view the next time; so those that do go from
one view to the next together have delivered the same in it.

The agreement on the next configuration is not touched by any of this. When the configuration goes
on, its servers leave their sides, and bring what they have (`Merge`).
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import permutations
from typing import final

from msgspec.structs import replace

from flexgroup.core.errors import PeerError
from flexgroup.membership.configuration import FIRST_OF_SIDES, Configuration, Member, SideId
from flexgroup.membership.decision import Decision
from flexgroup.membership.effects import Freeze, Install
from flexgroup.membership.flush import Report
from flexgroup.membership.messages import Apart, Formed, Gather, Gathered, OfSide
from flexgroup.membership.next_configuration import NextConfiguration
from flexgroup.membership.operations import (
    AnyOperation,
    JoinGroup,
    LeaveGroup,
    Merge,
    RemoveClient,
    already_member,
)
from flexgroup.membership.outbox import Outbox
from flexgroup.membership.patience import lease
from flexgroup.membership.proposals import Proposals
from flexgroup.membership.side_view import (
    Here,
    Origin,
    Part,
    SideView,
    first_count,
    here,
    overlaid,
    united,
    view_of,
)
from flexgroup.membership.suspicion import NEVER, FailureDetector, without_cuts
from flexgroup.membership.timings import Timings

MOST_VIEWS_MISSED = 1 << 32
DOMAINS_OF_A_LEADER = 1 << 40
"""So many domains of sides can be numbered by each server."""


@final
class Gathering:
    """The attempt of a leader to form a view."""

    __slots__ = ("id", "parts", "party", "sent", "since")

    def __init__(self, id: SideId, party: tuple[int, ...], now: float) -> None:
        self.id = id
        self.party = party
        self.since = now
        self.sent = now
        self.parts: dict[int, Part] = {}

    def missing(self) -> list[int]:
        return [server for server in self.party if server not in self.parts]


@final
class Sides:
    """What one server knows of its side."""

    __slots__ = (
        "_configuration",
        "_count",
        "_detector",
        "_domains_ever",
        "_formed_at",
        "_gathering",
        "_included",
        "_me",
        "_merging",
        "_needs_view",
        "_neighbours",
        "_outbox",
        "_party",
        "_party_since",
        "_promised",
        "_proposals",
        "_removed",
        "_said",
        "_said_at",
        "_timings",
        "is_active",
        "is_barred",
        "origin",
    )

    def __init__(
        self,
        me: int,
        timings: Timings,
        detector: FailureDetector,
        outbox: Outbox,
        proposals: Proposals,
        origin: Origin | None,
    ) -> None:
        self._me = me
        self._timings = timings
        self._detector = detector
        self._outbox = outbox
        self._proposals = proposals
        self.origin = origin
        """The view of this server, if it is not in those of its configuration."""
        self._configuration: Configuration
        self.is_barred = False
        """This server has come back, and takes part when the others know."""
        self._merging: int | None = None
        """The ticket of the proposal to bring what this server has to the others."""
        self._count = 0
        self._domains_ever = 0
        self._removed: set[int] = set()
        """Proposals to remove clients, which have left the view; the others are told later."""
        self._included: dict[int, AnyOperation] = {}
        """The proposals that are carried out with the view that is being formed."""
        self._stop()

    def _stop(self) -> None:
        """Take part in no side."""
        self.is_active = False
        """Whether this server stands still, and forms views with those that do so as well."""
        self._neighbours: dict[int, tuple[float, Apart]] = {}
        """What each server that stands still has said last, and when."""
        self._gathering: Gathering | None = None
        self._promised: SideId = (0, 0)
        """The view that this server follows the forming of."""
        self._party: tuple[int, ...] = ()
        self._party_since = NEVER
        self._formed_at = NEVER
        self._needs_view = False
        """The domains of the view are stopped; or a link was replaced, and what was under way on it
        may be lost."""
        self._said: Apart | None = None
        self._said_at = NEVER

    def enter(self, configuration: Configuration, decision: Decision) -> Origin | None:
        """A configuration is to be installed. Where this server comes from, if it is not in the
        views of the configuration: it was apart, and the others have not agreed yet to what it
        brings."""
        carried_out = [r.ticket for r in decision.requests if r.origin == self._me]
        if self._merging is None:
            self._included = {}  # with a view that was not formed
        elif self._merging in carried_out:
            self._merging = None
            self.origin = None
            self._removed.clear()
        self._stop()
        self._configuration = configuration
        self._count = max(self._count, first_count(configuration.number))
        return self.origin

    def entered(self) -> None:
        """It is installed: answer what was carried out with it, or bring what there is."""
        if self.origin is None:
            self._settle()
        elif self._merging is None:
            self._count += 1
            self._stop_domains((self._count, self._me))

    def leave(self) -> tuple[Origin | None, list[int]]:
        """This server is none of the cluster any more. Where it comes from, if it has members of
        partitionable groups, and the proposals to leave some of these, which are carried out."""
        if not self.has_members():
            return None, []
        origin = self._current
        left = []
        for ticket, proposal in self._proposals.of_side(self._configuration).items():
            operation = proposal.operation
            if isinstance(operation, LeaveGroup):
                origin = origin.without(operation.client, operation.group)
                left.append(ticket)
            elif isinstance(operation, RemoveClient):
                origin = origin.without(operation.client)
        for ticket in left:
            self._proposals.withdraw(ticket)
        return origin, left

    @property
    def _is_apart(self) -> bool:
        """Whether what processes of partitionable groups ask for is not for the configuration."""
        return self.is_active or self.origin is not None

    def held(self) -> Collection[int]:
        """The proposals that wait until this server is in the views of its configuration."""
        return self._proposals.of_side(self._configuration) if self._is_apart else ()

    def stand_still(self) -> None:
        """Go on with the partitionable groups, if there are any."""
        if self._configuration.partitionable and not self.is_barred:
            self.is_active = True
            self._needs_view = self.origin is not None
            if self._merging is not None:
                self._proposals.withdraw(self._merging)
                self._merging = None

    def _is_called(self, now: float) -> bool:
        """Whether this server, which hears enough others itself, hears that some of them stand
        still, and those that hear each other are too few to go on."""
        if not self._neighbours or not self._hears(now):
            return False
        servers = [server.number for server in self._configuration.servers]
        party = self._detector.survivors((), now)
        return not self._detector.may_continue(party, servers)

    def lost(self, server: int) -> None:
        """The link to another server was replaced."""
        if self.is_active and server in self._current.view.servers:
            self._needs_view = True

    @property
    def _current(self) -> Origin:
        if self.origin is not None:
            return self.origin
        return Origin(view_of(self._configuration), self._me)

    def has_members(self) -> bool:
        """Whether processes here are members of partitionable groups. Those that a server has saved
        ended with it when it was killed."""
        if self.is_barred:
            return False
        groups = self._current.renumbered(self._me)
        return any(one.members for one in here(groups, self._me))

    def without_side(self, report: Report) -> Report:
        """A report for the next configuration: the domains of a side are no concern of it, but that
        this server has left others for them is."""
        if self.origin is None:
            return report
        left = [
            domain.number
            for domain in self._configuration.domains
            if domain.partitionable and self._me in domain.servers
        ]
        numbers = {domain.number for domain in self.origin.view.domains}
        domains = [one for one in report.domains if one.domain not in numbers]
        return replace(report, domains=domains, left=tuple(left))

    # What this server has.

    def _truth(self) -> tuple[Here, ...]:
        """What it has of the groups, when its proposals are carried out that can be."""
        following = NextConfiguration(overlaid(self._configuration, self._current, self._me))
        self._included = {}
        for ticket, proposal in self._proposals.of_side(self._configuration).items():
            error = following.apply(self._me, proposal.operation, proposal.group)
            if error is None:
                self._included[ticket] = proposal.operation
            else:
                self._proposals.settle(ticket, error)
        return here(following.finish().groups, self._me)

    def _is_waiting(self) -> bool:
        waiting = self._proposals.of_side(self._configuration)
        return self._needs_view or any(ticket not in self._removed for ticket in waiting)

    def _settle(self) -> None:
        """The view is installed: answer what was carried out with it."""
        if not self._included:
            return
        members = {
            (entry.name, member) for entry in self._current.view.groups for member in entry.members
        }
        for ticket, operation in self._included.items():
            error = None
            if isinstance(operation, RemoveClient):
                self._removed.add(ticket)  # the others are told of it later
                continue
            if isinstance(operation, JoinGroup):
                member = Member(operation.process, self._me, operation.client)
                if (operation.group, member) not in members:
                    error = already_member(operation)
            self._proposals.settle(ticket, error)
        self._included = {}

    # Who is there.

    def _hears(self, now: float) -> tuple[int, ...]:
        patience_with = self._detector.patience_with
        return tuple(
            sorted(
                server
                for server, (at, _) in self._neighbours.items()
                if now - at < lease(patience_with(server))
            )
        )

    def _look(self, now: float) -> Apart:
        """What there is to say: who is heard, and who leads."""
        me = self._me
        hears = self._hears(now)
        said = {server: self._neighbours[server][1] for server in hears}
        mutual = [server for server in hears if me in said[server].hears]
        follows = min(
            (
                server
                for server in mutual
                if server < me
                and said[server].follows == server
                and me not in said[server].leaves_out
            ),
            default=me,
        )
        leaves_out: tuple[int, ...] = ()
        party: tuple[int, ...] = ()
        if follows == me:
            led = [s for s in mutual if s > me and said[s].follows in (me, s)]
            candidates = [me, *led]
            cuts = {
                frozenset((one, other))
                for one, other in permutations(led, 2)
                if other not in said[one].hears
            }
            remaining = without_cuts(candidates, cuts)
            leaves_out = tuple(server for server in candidates if server not in remaining)
            party = tuple(s for s in remaining if s == me or said[s].follows == me)
        if party != self._party:
            self._party = party
            self._party_since = now
        view, at = self._current.view.id, self._configuration.number
        return Apart(me, at, view, self._count, hears, follows, leaves_out, self._is_waiting())

    def go_on(self, now: float) -> None:
        """Tell the others what is new, and form a view if it is up to this server."""
        if not self.is_active and self._is_called(now):
            self.stand_still()
        if not self.is_active:
            return
        saying = self._look(now)
        if saying != self._said or now - self._said_at >= self._timings.beat:
            self._said, self._said_at = saying, now
            for server in self._configuration.servers:
                if server.number != self._me:
                    self._outbox.send(server.number, saying)
        if saying.follows != self._me:
            self._gathering = None
        elif self._gathering is not None:
            self._gather_again(now)
        if saying.follows == self._me and self._gathering is None and self._is_due(now):
            self._count += 1
            self._gathering = Gathering((self._count, self._me), self._party, now)
            self._gather(self._gathering)

    def _is_due(self, now: float) -> bool:
        """Whether there is a reason to form another view. Who has just come may not be all."""
        view = self._current.view
        others = [self._neighbours[s][1] for s in self._party if s != self._me]
        settled = now - max(self._party_since, self._formed_at) >= 2 * self._timings.beat
        is_other = self._party != view.servers or any(other.view != view.id for other in others)
        if is_other or self._needs_view:
            return settled
        return self._is_waiting() or any(other.is_waiting for other in others)

    def _gather(self, gathering: Gathering) -> None:
        for server in gathering.missing():
            message = Gather(self._me, self._configuration.number, gathering.id)
            self._outbox.send(server, message)

    def _gather_again(self, now: float) -> None:
        """What was not answered may be lost; and who has gone does not answer."""
        gathering = self._gathering
        assert gathering is not None
        is_overtaken = self._promised > gathering.id
        is_over = now - gathering.since >= self._timings.patience
        if gathering.party != self._party or is_overtaken or is_over:
            self._gathering = None
        elif now - gathering.sent >= self._timings.beat:
            gathering.sent = now
            self._gather(gathering)

    # Messages.

    def _check(self, id: SideId, sender: int) -> None:
        """Raise PeerError for what no server of this configuration says."""
        if id[1] != sender:
            raise PeerError(f"server {sender} forms a view of server {id[1]}")
        self._check_count(id[0])

    def _check_count(self, count: int) -> None:
        if not 0 <= count <= self._count + MOST_VIEWS_MISSED:
            raise PeerError(f"view {count} of a side, after view {self._count}")

    def received(self, message: OfSide, now: float) -> None:
        match message:
            case Apart():
                self._on_apart(message, now)
            case Gather():
                self._on_gather(message)
            case Gathered():
                self._on_gathered(message, now)
            case Formed():
                self._on_formed(message, now)

    def _on_apart(self, message: Apart, now: float) -> None:
        self._check_count(message.count)
        self._count = max(self._count, message.count)
        self._neighbours[message.sender] = now, message

    def _on_gather(self, message: Gather) -> None:
        self._check(message.id, message.sender)
        follows = self._said.follows if self._said is not None else self._me
        if self.is_active and message.sender == follows and message.id >= self._promised:
            self._count = max(self._count, message.id[0])
            self._stop_domains(message.id)

    def _stop_domains(self, id: SideId) -> None:
        """Have the domains of the view stopped, to go on in another."""
        self._promised = id
        self._needs_view = True
        domains = tuple(domain.number for domain in self._current.view.domains)
        number = self._configuration.number
        self._outbox.ask(Freeze(number + 1, id, domains, is_of_side=True))

    def frozen(self, effect: Freeze, report: Report) -> None:
        """The domains of the view deliver nothing more."""
        number = self._configuration.number
        if effect.ballot != self._promised or effect.change != number + 1:
            return
        origin = self._current
        numbers = {domain.number for domain in origin.view.domains}
        reports = [one for one in report.domains if one.domain in numbers]
        part = Part(origin, self._truth(), reports)
        if self.is_active:
            self._outbox.send(effect.ballot[1], Gathered(self._me, number, effect.ballot, part))
        else:
            self._merging = self._proposals.add(Merge(part), self._configuration)

    def _on_gathered(self, message: Gathered, now: float) -> None:
        gathering = self._gathering
        if gathering is None or gathering.id != message.id:
            return
        if message.sender not in gathering.party:
            return
        gathering.parts[message.sender] = message.part
        if gathering.missing():
            return
        self._gathering = None
        number = self._configuration.number
        # A server that has come back has forgotten how many there were beside this configuration.
        self._domains_ever = max(self._domains_ever, number << 8)
        first = FIRST_OF_SIDES + self._me * DOMAINS_OF_A_LEADER + self._domains_ever
        view, flush = united(gathering.id, self._configuration, gathering.parts, first)
        self._domains_ever += len(view.domains)
        formed = Formed(self._me, number, view, flush)
        for server in gathering.party:
            if server != self._me:
                self._outbox.send(server, formed)
        self._on_formed(formed, now)

    def _on_formed(self, message: Formed, now: float) -> None:
        """Go on in this view of the partitionable groups; everything else stands still."""
        view = message.view
        self._check(view.id, message.sender)
        if not self.is_active or view.id != self._promised or self._me not in view.servers:
            return
        self._check_view(view)
        self.origin = origin = Origin(view, self._me)
        self._formed_at = now
        self._needs_view = False
        configuration = overlaid(self._configuration, origin, self._me)
        self._outbox.ask(Install(configuration, self._me, message.flush, (), stands_still=True))
        self._settle()

    def _check_view(self, view: SideView) -> None:
        servers = {server.number for server in self._configuration.servers}
        known = {entry.number: entry for entry in self._configuration.partitionable}
        keys = {entry.domain_key for entry in known.values()}
        for entry in view.groups:
            group = known.get(entry.number)
            if group is None or entry.domain_key != group.domain_key or entry.name != group.name:
                raise PeerError(f"a view of group {entry.number}, which is not partitionable")
            if not {*entry.taking_part} <= {*view.servers}:
                raise PeerError(f"a view of group {entry.number} with servers of another side")
        for domain in view.domains:
            if domain.number < FIRST_OF_SIDES or domain.key not in keys:
                raise PeerError(f"domain {domain.number} is none of a side")
            if not {*domain.servers} <= {*view.servers} <= servers:
                raise PeerError(f"domain {domain.number} with servers of another side")
