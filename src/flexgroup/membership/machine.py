"""The membership of one server: events come in, effects go out.

The contract with the host stands in `flexgroup.membership`. The oldest server that is not
suspected leads: it gathers what is proposed and who has to go, and leads the change to the next
configuration (`flexgroup.membership.change`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import final

from msgspec.structs import replace

from flexgroup.core.errors import PeerError
from flexgroup.membership.beats import Beats
from flexgroup.membership.change import Change
from flexgroup.membership.configuration import Configuration, Server
from flexgroup.membership.decision import Decision, ProposalResult, carried_out, excludes
from flexgroup.membership.effects import (
    Answer,
    Drain,
    Effect,
    Excluded,
    Freeze,
    Install,
    LinkNumber,
    SendOn,
)
from flexgroup.membership.flush import Report
from flexgroup.membership.leader import Leader
from flexgroup.membership.messages import (
    Accept,
    Accepted,
    Admitted,
    AskToJoin,
    Beat,
    Commit,
    ControlMessage,
    Decided,
    FromMember,
    Introduce,
    Introduced,
    Meet,
    NotAdmitted,
    NotMember,
    OfSide,
    Overtaken,
    Prepare,
    Prepared,
    Propose,
    Rejected,
)
from flexgroup.membership.newcomers import Introductions, attempt_of, introduce
from flexgroup.membership.operations import AnyOperation, RemoveClient, Renew
from flexgroup.membership.outbox import Outbox
from flexgroup.membership.proposals import JOINING, LEFT, Proposals
from flexgroup.membership.side_view import Origin, overlaid
from flexgroup.membership.sides import Sides
from flexgroup.membership.stable import Installed, Snapshot, first_number
from flexgroup.membership.suspicion import NEVER, FailureDetector
from flexgroup.membership.timings import Timings

LACKS = "the other servers went on without messages that this one lacks"


@final
class Membership:
    def __init__(
        self,
        name: str,
        address: str,
        timings: Timings,
        keeps_data: bool = False,
        life: int = 0,
        origin: Origin | None = None,
        attempts: tuple[int, ...] = (0,),
    ) -> None:
        self.name = name
        self.address = address
        self.keeps_data = keeps_data
        """Whether the host carries out Save, so that this server may come back."""
        self.configuration: Configuration | None = None
        self.ended = False
        """This server has left or was excluded; it says and does nothing more."""
        self._timings = timings
        self._outbox = Outbox(address, keeps_data)
        self._introductions = Introductions(self._outbox)
        self._proposals = Proposals(self._outbox, timings.beat)
        self._step: Decision | None = None
        """The one that led to the installed configuration, for servers that missed it."""
        self._installed_at = NEVER
        self._frozen: set[int] = set()
        """The domains that deliver nothing more, until others follow them."""
        self.stands_still = False
        """Too few others were heard to go on, and nobody has led a change since."""
        self.origin = origin
        """The view of partitionable groups that this server comes from, if it was a server of the
        cluster before and has members of any."""
        self._restarted = False
        """This server has come back, and the others have not yet agreed on what is lost."""
        self.life = life
        """How often it has come back, also as another server: its clients are numbered by that."""
        self.attempts = attempts
        """The numbers of the attempts of this process to join, or to begin a cluster, since it was
        last admitted: this one comes last, and those before it came to nothing."""
        # From the first configuration on:
        self._detector: FailureDetector
        self._beats: Beats
        self._change: Change
        self._leader: Leader
        self._sides: Sides

    def take_effects(self) -> list[Effect]:
        return self._outbox.take()

    @property
    def number(self) -> int | None:
        """The number of this server, once it has one."""
        return self._outbox.number

    @property
    def secret(self) -> int | None:
        """What only servers of the cluster know of this one: the attempt with which it came, or
        with which it is joining them. None: it has not begun to."""
        if self.configuration is None:
            return self.attempts[-1] if self.attempts else None
        return next(one.attempt for one in self.configuration.servers if one.number == self.number)

    def is_isolated(self, now: float) -> bool:
        """Whether too few others are heard for this server to go on; so it stands still."""
        if self.configuration is None or self.ended:
            return False
        self._detector.passes(now)
        return self._detector.is_isolated(now)

    def silent(self, now: float) -> tuple[int, ...]:
        """The servers of the configuration that are taken for failed here."""
        return () if self.configuration is None or self.ended else self._detector.silent(now)

    def patience_with(self, server: int) -> float:
        """How long another server may say nothing before it is suspected."""
        if self.configuration is None:
            return self._timings.patience
        return self._detector.patience_with(server)

    # Beginning

    def found(self, now: float) -> None:
        """Begin a cluster, as its first server."""
        me = Server(1, self.name, self.address, self.keeps_data, self.attempts[-1])
        self._begin(1, Configuration(1, (me,), (), next_server=2, next_group=1), now)

    def restore(self, saved: Snapshot, now: float) -> None:
        """Come back as the server that has saved this.

        What its domains and clients had is lost. So it stands still, and what the other servers
        agree on next takes that into account; or they tell it that they have gone on without it.
        """
        self._outbox.number = saved.number
        self.life = saved.life + 1
        self._proposals.count_from(first_number(self.life))
        self._restarted = True
        self._step = saved.step
        self._outbox.save(replace(saved, life=self.life))
        self._enter(saved.configuration, Decision(saved.configuration.number), now, saved)
        self._detector.came_back(now)

    def snapshot(self) -> Snapshot:
        """All that this server has to remember, once a configuration is installed."""
        assert self.configuration is not None
        change = self._change
        return Snapshot(
            self._me, self.configuration, self._step, change.promised, change.accepted, self.life
        )

    def _begin(self, number: int, configuration: Configuration, now: float) -> None:
        """This is the first configuration of this server."""
        self.attempts = ()
        self._outbox.number = number
        self._outbox.save(Snapshot(number, configuration, self._step, life=self.life))
        self._enter(configuration, Decision(configuration.number), now)

    def join(self, now: float) -> None:
        """Ask the contact to be admitted; the host has a link to it."""
        *given_up, attempt = self.attempts
        asked = AskToJoin(self.name, self.address, self.keeps_data, attempt, tuple(given_up))
        self._outbox.ask(SendOn(None, asked))

    def contact_lost(self, now: float) -> None:
        if self.configuration is None:
            self._exclude(
                "the server that was asked to admit this one closed the connection, or failed; "
                "if it runs, its log says why (TLS, another version)"
            )

    def propose(self, operation: AnyOperation, now: float) -> int:
        """Propose a change; the effect Answer with the returned ticket tells how it ended."""
        if self.ended or self.configuration is None:
            if self.origin is not None and isinstance(operation, RemoveClient):
                self.origin = self.origin.without(operation.client)
            state = "has left the group of servers" if self.ended else "is not admitted yet"
            return self._proposals.refuse(f"this server {state}; try again later")
        ticket = self._proposals.add(operation, self.configuration)
        if isinstance(operation, Renew):
            self._sides.lost(operation.server)
            self._proposals.send_again()
        self._go_on(now)
        return ticket

    # What the host sees of other servers

    def heard(self, server: int, now: float) -> None:
        if self.configuration is not None:
            self._detector.passes(now)
            self._detector.heard(server, now)

    def has_beaten(self, server: int) -> bool:
        """Whether that server has said that it is one of this configuration."""
        return self.configuration is not None and self._detector.has_beaten(server)

    def link_lost(self, server: int, gone: bool, now: float) -> None:
        if self.configuration is not None and not self.ended:
            self._detector.passes(now)
            if gone:
                self._detector.refused(server, now)
                self._go_on(now)

    def replaced(self, server: int, now: float) -> None:
        """Another server of the cluster answers where this one was."""
        if self.configuration is not None and not self.ended:
            self._detector.passes(now)
            self._detector.replaced(server, now)
            self._go_on(now)

    def frozen(self, effect: Freeze, report: Report, now: float) -> None:
        """What a change concerns has stopped, as this effect asked."""
        if self._is_next(effect.change):
            if self._restarted:
                report = replace(report, restarted=self.life)
            if effect.is_of_side:
                self._sides.frozen(effect, report)
            else:
                self._change.frozen(effect.ballot, self._sides.without_side(report))
            self._go_on(now)

    def drained(self, effect: Drain, now: float) -> None:
        """What this effect asked for is delivered."""
        if self._is_next(effect.change):
            self._change.drained(effect.ballot)
            self._go_on(now)

    def _is_next(self, change: int) -> bool:
        configuration = self.configuration
        return not self.ended and configuration is not None and change == configuration.number + 1

    def tick(self, now: float) -> None:
        configuration = self.configuration
        if configuration is None or self.ended:
            return
        if self.is_isolated(now):
            # What it has accepted may be installed, and newcomers go on with it there.
            following = self._change.accepted_servers(configuration)
            if self._detector.is_abandoned(following) and not self._sides.has_members():
                self._exclude("too many of the other servers have failed for the rest to go on")
                return
            self._stand_still(configuration)
        if self._beats.are_due(now):
            self._beats.send_all(configuration, self._change.promised, now)
            self._beats.hand_over(configuration, self._step, now - self._installed_at)
        attempt = self._change.attempt
        if attempt is not None and now - attempt.sent >= self._timings.beat:
            self._change.repeat(now)
        self._go_on(now)

    def _stand_still(self, configuration: Configuration) -> None:
        """Too few others are heard: the rest may be going on without this server."""
        if not self.stands_still:
            self.stands_still = True
            self._freeze([domain.number for domain in configuration.domains])
            self._change.suspend(tuple(sorted(self._frozen)))
            self._sides.stand_still()

    def _freeze(self, domains: Collection[int]) -> None:
        """Remember those of these domains that this server takes part in."""
        assert self.configuration is not None
        self._frozen.update(
            domain.number
            for domain in self.configuration.domains
            if domain.number in domains and self._me in domain.servers
        )

    def _is_member(self, server: int) -> bool:
        assert self.configuration is not None
        return any(other.number == server for other in self.configuration.servers)

    @property
    def _me(self) -> int:
        assert self.number is not None
        return self.number

    # Messages

    def received(
        self, link: LinkNumber, server: int | None, message: ControlMessage, now: float
    ) -> None:
        if self.ended:
            if isinstance(message, AskToJoin):
                self._proposals.do_not_admit(link, message, LEFT)
            return
        match message:
            case FromMember() if self.configuration is not None:
                if server != message.sender:
                    if server is not None and self._is_member(server):
                        raise PeerError(f"server {server} speaks as server {message.sender}")
                    return  # somebody who may only have had another number before
                self.heard(message.sender, now)
                if self._is_of_this_configuration(link, message, now):
                    self._check(message)
                    self._handle(message, now)
                if not isinstance(message, Beat) or message.silent or self._change.is_under_way:
                    self._go_on(now)  # nothing waits for other beats, which are most messages
            case AskToJoin():
                if self.configuration is not None:
                    self._detector.given_up(self.configuration.servers, message.given_up)
                if self.configuration is None:
                    self._proposals.do_not_admit(link, message, JOINING)
                elif self._restarted or self.is_isolated(now):
                    self._proposals.do_not_admit(link, message, "hears too few of the others")
                else:
                    self._proposals.admit(link, message, self.configuration)
                    self._go_on(now)
            case Introduce() if self.configuration is None and server == message.sender:
                self._introductions.met(link, message, now)
            case Introduced() if self.configuration is not None and server == message.number:
                self._leader.introduced(message.number, now)
                self._go_on(now)
            case Admitted() if self._asks_with(attempt_of(message)):
                self._step = message.step
                self._begin(message.number, message.configuration, now)
            case NotAdmitted() if self._asks_with(message.attempt):
                self._exclude(message.reason)

    def _asks_with(self, attempt: int | None) -> bool:
        """Whether this server is joining, and with this attempt: others have been told, or will
        be, that it never came with an earlier one."""
        return self.configuration is None and self.attempts[-1:] == (attempt,)

    def _is_of_this_configuration(self, link: LinkNumber, message: FromMember, now: float) -> bool:
        """Whether sender and receiver have the same one; if not, the one behind is helped."""
        configuration = self.configuration
        assert configuration is not None
        sender = message.sender
        is_member = sender != self._me and self._is_member(sender)
        if isinstance(message, NotMember):
            if is_member and message.at > configuration.number:
                self._leave(f"the other servers went on to configuration {message.at} without it")
            return False
        if isinstance(message, Decided):
            decision = message.decision
            if decision.number == configuration.number + 1:
                if self._change.has_accepted(decision) or (is_member and not decision.casts):
                    self._install(decision, now)
                elif is_member:
                    self._leave(LACKS)
            return False
        if message.at == configuration.number:
            return is_member
        if isinstance(message, Beat) and is_member:
            self._detector.check_beat(message)
            if not self._leader.may_soon_exclude(sender, now):
                self._detector.beaten_elsewhere(message, configuration.number, now)
        if message.at < configuration.number and not is_member:
            if sender < configuration.next_server:
                self._outbox.ask(SendOn(link, NotMember(self._me, configuration.number)))
        elif (
            message.at == configuration.number - 1
            and self._step is not None
            # Before, the commit may be on its way.
            and now - self._installed_at >= self._timings.beat
        ):
            self._outbox.send(sender, Decided(self._me, configuration.number, self._step))
        elif (
            message.at == configuration.number + 1
            and not is_member
            and sender in self._change.accepted_servers(configuration)
        ):
            # A newcomer may be the only one left who can tell that this was decided.
            self._beats.send(sender, configuration.number, self._change.promised, now)
        return False

    def _check(self, message: FromMember) -> None:
        """Raise PeerError for what no server of this configuration says."""
        match message:
            case Beat():
                self._change.check_ballot(message.promised)
                self._detector.check_beat(message)
            case Prepare() | Accept() | Overtaken():
                leader = None if isinstance(message, Overtaken) else message.sender
                self._change.check_ballot(message.ballot, leader)
            case Meet():
                self._leader.check_newcomer(message.server)

    def _handle(self, message: FromMember, now: float) -> None:
        match message:
            case Beat():
                if self._leader.may_soon_exclude(message.sender, now):
                    self._detector.beaten_in_vain(message, now)
                else:
                    self._detector.beaten(message, now)
                self._change.saw(message.promised, now)
                if self._detector.is_to_be_answered(message, now):
                    self._beats.send(message.sender, message.at, self._change.promised, now)
            case Meet():
                introduce(message, self._me, self._outbox)
            case Propose():
                self._leader.proposed(message)
            case Rejected():
                self._proposals.settle(message.ticket, message.error)
            case Prepare():
                self._change.saw(message.ballot, now)
                if message.ballot >= self._change.promised:
                    self._freeze(message.freeze)
                self._change.on_prepare(message)
            case Prepared():
                if not self._leader.prepared(message, now):
                    self._leave(LACKS)
            case Overtaken():
                self._change.saw(message.ballot, now)
            case Accept():
                if self._change.on_accept(message) and self.configuration is not None:
                    following, _ = carried_out(self.configuration, message.decision)
                    self._leader.newcomers.keep(following)
            case Accepted():
                decision = self._change.on_accepted(message)
                if decision is not None and not self._is_left_behind_by(decision):
                    self._install(decision, now)
            case Commit():
                decision = self._change.on_commit(message)
                if decision is not None:
                    self._install(decision, now)
            case OfSide():
                self._sides.received(message, now)

    def _go_on(self, now: float) -> None:
        """Do whatever has become possible."""
        while not self.ended:
            configuration = self.configuration
            assert configuration is not None
            if self._proposals.are_waiting:
                leader = min(self._detector.survivors((), now), default=self._me)
                self._proposals.send(
                    self._me, configuration.number, leader, now, self._sides.held()
                )
            self._leader.lead(now)
            self._sides.go_on(now)
            if not self._outbox.to_itself:
                break
            message = self._outbox.to_itself.popleft()
            if message.at == configuration.number:
                self._handle(message, now)

    # Installing

    def _install(self, decision: Decision, now: float) -> None:
        assert self.configuration is not None
        configuration, results = carried_out(self.configuration, decision)
        if all(server.number != self._me for server in configuration.servers):
            self._leave(
                f"the other servers went on to configuration {configuration.number} without it",
                results,
            )
            return
        self._step = decision
        self._outbox.save(Installed(decision))
        self._enter(configuration, decision, now)
        self._settle_all(results)
        self._proposals.send_again()

    def _enter(
        self,
        configuration: Configuration,
        decision: Decision,
        now: float,
        saved: Snapshot | None = None,
    ) -> None:
        peers = tuple(server.number for server in configuration.servers)
        is_first = self.configuration is None
        if is_first:
            since = self._introductions.told_at(self._me)
            self._detector = FailureDetector(self._me, self._timings, now, since)
            self._beats = Beats(self._timings, self._detector, self._outbox)
            self._leader = Leader(self._me, self._timings, self._detector, self._outbox)
            self._sides = Sides(
                self._me, self._timings, self._detector, self._outbox, self._proposals, self.origin
            )
            self.origin = None
        self._outbox.disconnect_all_but(peers, configuration.next_server)
        self._leader.newcomers.keep(configuration)
        self._installed_at = now
        self.configuration = configuration
        self._detector.enter_configuration(configuration.number, configuration.servers, now)
        for server in configuration.servers:
            if server.number != self._me and server.address == self.address:
                self._detector.replaced(server.number, now)  # this one, before it was excluded
        self._change = Change(self._me, configuration.number, self._outbox)
        if saved is not None:
            self._change.restore(saved.promised, saved.accepted)
        self._leader.enter(configuration, self._change, decision)
        origin = self._sides.enter(configuration, decision)
        if (self._me, self.life) in decision.restarted:
            self._restarted = False
        self._sides.is_barred = self._restarted
        self._outbox.ask(
            Install(
                configuration if origin is None else overlaid(configuration, origin, self._me),
                self._me,
                decision.flush,
                decision.casts,
                tuple(server for server, _ in decision.restarted),
                self._restarted,
                is_apart=origin is not None,
            )
        )
        self._sides.entered()
        self.stands_still = False
        self._frozen.intersection_update([domain.number for domain in configuration.domains])
        if self._frozen or self._restarted:
            # The change was about something else: another one has to follow.
            self._change.suspend(tuple(sorted(self._frozen)))
        if is_first:
            self._beats.send_all(configuration, self._change.promised, now)
        elif self.is_isolated(now):
            # What was agreed on may be long ago, if this server was stopped meanwhile.
            self._stand_still(configuration)

    def _is_left_behind_by(self, decision: Decision) -> bool:
        """Whether others go on without this server, which leads them to it but has not asked for
        it: it has completed what somebody else began. If it left at once, and what it tells them
        were lost, they might be too few to find out. So it tells them until they say that they have
        gone on."""
        assert self.configuration is not None
        return not self._proposals.to_leave() and excludes(decision, self.configuration, self._me)

    def _settle_all(self, results: Sequence[ProposalResult]) -> None:
        assert self.configuration is not None
        installed = None if self._step is None else (self.configuration, self._step)
        for result in results:
            if result.origin == self._me:
                self._proposals.settle(result.ticket, result.error, result.admitted, installed)

    # Ending

    def _leave(self, reason: str, results: Sequence[ProposalResult] = ()) -> None:
        """The others go on without this server, whether it asked for that or not."""
        asked = self._proposals.to_leave()
        # A newcomer is not admitted through a server that goes itself.
        self._settle_all([result for result in results if result.admitted is None])
        for ticket in asked:
            self._proposals.settle(ticket, None)
        if asked:
            self.ended = True
            self._proposals.refuse_all("this server has left the group of servers")
        else:
            self._exclude(reason)

    def _exclude(self, reason: str) -> None:
        if self.ended:
            return
        self.ended = True
        left: list[int] = []
        missed: Configuration | None = None
        if self.configuration is not None:
            self.origin, left = self._sides.leave()
            missed = self._change.accepted_configuration(self.configuration)
        self._proposals.refuse_all(reason)
        kept = None if self.origin is None else self.origin.kept(self.number or 0)
        self._outbox.ask(Excluded(reason, kept, missed))
        for ticket in left:
            self._outbox.ask(Answer(ticket, None))
