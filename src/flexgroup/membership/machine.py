"""The membership of one server: events come in, effects go out.

The contract with the host stands in `flexgroup.membership`. The oldest server that is not
suspected leads: it gathers what is proposed and who has to go, and leads the change to the next
configuration (`flexgroup.membership.change`).
"""

from __future__ import annotations

from collections.abc import Sequence

from flexgroup.core.errors import PeerError
from flexgroup.membership.change import Change
from flexgroup.membership.configuration import Configuration, Server
from flexgroup.membership.effects import (
    Effect,
    Excluded,
    Install,
    LinkNumber,
    Outbox,
    SendOn,
)
from flexgroup.membership.flush import DomainReport
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
    Decision,
    FromMember,
    Introduce,
    Introduced,
    Meet,
    NotAdmitted,
    NotMember,
    Overtaken,
    Prepare,
    Prepared,
    ProposalResult,
    Propose,
    Rejected,
)
from flexgroup.membership.newcomers import Introductions
from flexgroup.membership.operations import Admit, AnyOperation
from flexgroup.membership.proposals import Proposals
from flexgroup.membership.suspicion import NEVER, FailureDetector, Timings


class Membership:
    def __init__(self, name: str, address: str, timings: Timings) -> None:
        self.name = name
        self.address = address
        self.configuration: Configuration | None = None
        self.ended = False
        """This server has left or was excluded; it says and does nothing more."""
        self._timings = timings
        self._outbox = Outbox(address)
        self._introductions: dict[int, Introductions] = {}
        self._proposals = Proposals(self._outbox)
        self._beaten = NEVER
        self._step: Decision | None = None
        """The one that led to the installed configuration, for servers that missed it."""
        self._installed_at = NEVER
        # From the first configuration on:
        self._detector: FailureDetector
        self._change: Change
        self._leader: Leader

    def take_effects(self) -> list[Effect]:
        return self._outbox.take()

    @property
    def number(self) -> int | None:
        """The number of this server, once it has one."""
        return self._outbox.number

    def is_isolated(self, now: float) -> bool:
        """Whether too few others are heard for this server to go on; so it stands still."""
        if self.configuration is None or self.ended:
            return False
        self._detector.passes(now)
        return self._detector.is_isolated(now)

    # Beginning

    def found(self, now: float) -> None:
        """Begin a cluster, as its first server."""
        me = Server(1, self.name, self.address)
        self._outbox.number = me.number
        first = Configuration(1, (me,), (), next_server=2, next_group=1)
        self._install(Decision(first, [], []), now)

    def join(self, now: float) -> None:
        """Ask the contact to be admitted; the host has a link to it."""
        self._outbox.ask(SendOn(None, AskToJoin(self.name, self.address)))

    def contact_lost(self, now: float) -> None:
        if self.configuration is None:
            self._exclude(
                "the server that was asked to admit this one closed the connection, or failed; "
                "if it runs, its log says why (TLS, another version)"
            )

    def propose(self, operation: AnyOperation, now: float) -> int:
        """Propose a change; the effect Answer with the returned ticket tells how it ended."""
        if self.ended or self.configuration is None:
            state = "has left the group of servers" if self.ended else "is not admitted yet"
            return self._proposals.refuse(f"this server {state}; try again later")
        ticket = self._proposals.add(operation, self.configuration)
        self._go_on(now)
        return ticket

    # What the host sees of other servers

    def heard(self, server: int, now: float) -> None:
        if self.configuration is not None:
            self._detector.passes(now)
            self._detector.heard(server, now)

    def link_lost(self, server: int, gone: bool, now: float) -> None:
        if self.configuration is None or self.ended:
            return
        self._detector.passes(now)
        if gone:
            self._detector.refused(server, now)
            self._go_on(now)

    def frozen(self, change: int, report: list[DomainReport], now: float) -> None:
        if not self.ended and self.configuration and change == self.configuration.number + 1:
            self._change.frozen(report)
            self._go_on(now)

    def tick(self, now: float) -> None:
        configuration = self.configuration
        if configuration is None or self.ended:
            return
        if self.is_isolated(now):
            if self._detector.is_abandoned():
                self._exclude("too many of the other servers have failed for the rest to go on")
                return
            self._stand_still()
        if now - self._beaten >= self._timings.beat:
            self._beat(configuration, now)
        attempt = self._change.attempt
        if attempt is not None and now - attempt.sent >= self._timings.beat:
            self._change.repeat(now)
        self._go_on(now)

    def _stand_still(self) -> None:
        """Too few others are heard: the rest may be going on without this server."""
        self._change.suspend()

    def _beat(self, configuration: Configuration, now: float) -> None:
        self._beaten = now
        for server in configuration.servers:
            if server.number != self._me:
                self._beat_to(server.number, configuration, now)

    def _beat_to(self, server: int, configuration: Configuration, now: float) -> None:
        echo, silent = self._detector.echo(server), self._detector.silent(now)
        beat = Beat(self._me, configuration.number, now, echo, silent, self._change.promised)
        self._outbox.send(server, beat)

    @property
    def _me(self) -> int:
        assert self.number is not None
        return self.number

    # Messages

    def received(
        self, link: LinkNumber, server: int | None, message: ControlMessage, now: float
    ) -> None:
        if self.ended:
            return
        match message:
            case AskToJoin():
                if self.configuration is None:
                    self._do_not_admit(link, "is not admitted itself")
                elif self.is_isolated(now):
                    self._do_not_admit(link, "hears too few of the others")
                else:
                    admit = Admit(message.name, message.address)
                    self._proposals.add(admit, self.configuration, link)
                    self._go_on(now)
            case Introduce() if self.configuration is None:
                met = self._introductions.setdefault(message.number, Introductions())
                met.met(link, message, self._outbox)
            case Introduced():
                if self.configuration is not None:
                    self._leader.introduced(message.number, now)
                    self._go_on(now)
            case Admitted() if self.configuration is None:
                self._outbox.number = message.number
                self._install(Decision(message.configuration, [], []), now)
            case NotAdmitted() if self.configuration is None:
                self._exclude(message.reason)
            case FromMember() if self.configuration is not None:
                if server != message.sender and any(
                    other.number == server for other in self.configuration.servers
                ):
                    raise PeerError(f"server {server} speaks as server {message.sender}")
                self.heard(message.sender, now)
                if self._is_of_this_configuration(link, message, now):
                    self._handle(message, now)
                self._go_on(now)

    def _do_not_admit(self, link: LinkNumber, why: str) -> None:
        answer = NotAdmitted(f"the server asked {why}; try again, or ask another")
        self._outbox.ask(SendOn(link, answer))

    def _is_of_this_configuration(self, link: LinkNumber, message: FromMember, now: float) -> bool:
        """Whether sender and receiver have the same one; if not, the one behind is helped."""
        configuration = self.configuration
        assert configuration is not None
        sender = message.sender
        if isinstance(message, NotMember):
            if message.at > configuration.number:
                self._leave(f"the other servers went on to configuration {message.at} without it")
            return False
        if isinstance(message, Decided):
            decision = message.decision
            if decision.configuration.number == configuration.number + 1:
                self._install(decision, now)
            return False
        is_member = sender != self._me and any(s.number == sender for s in configuration.servers)
        if message.at == configuration.number:
            return is_member
        if message.at < configuration.number and not is_member:
            if sender < configuration.next_server:
                answer = NotMember(self._me, configuration.number)
                self._outbox.ask(SendOn(link, answer))
        elif (
            message.at == configuration.number - 1
            and self._step is not None
            # Before, the commit may be on its way.
            and now - self._installed_at >= self._timings.beat
        ):
            self._outbox.send(sender, Decided(self._me, configuration.number, self._step))
        return False

    def _handle(self, message: FromMember, now: float) -> None:
        match message:
            case Beat():
                self._detector.beaten(message.sender, message.sent, message.echo, message.silent)
                self._change.saw(message.promised, now)
                if message.echo == NEVER and self.configuration is not None:
                    # It is new, and does not know yet whether it is heard.
                    self._beat_to(message.sender, self.configuration, now)
            case Meet():
                self._outbox.connect(message.server)
                number = message.server.number
                self._outbox.send(number, Introduce(self._me, message.at, number, ()))
            case Propose():
                self._leader.proposed(message)
            case Rejected():
                self._proposals.settle(message.ticket, message.error)
            case Prepare():
                self._change.saw(message.ballot, now)
                self._change.on_prepare(message)
            case Prepared():
                self._change.on_prepared(message, self._leader.compose)
            case Overtaken():
                self._change.saw(message.ballot, now)
            case Accept():
                if self._change.on_accept(message):
                    self._meet(message.decision.configuration)
            case Accepted():
                decision = self._change.on_accepted(message)
                if decision is not None:
                    self._install(decision, now)
            case Commit():
                decision = self._change.on_commit(message)
                if decision is not None:
                    self._install(decision, now)

    def _go_on(self, now: float) -> None:
        """Do whatever has become possible."""
        while not self.ended:
            configuration = self.configuration
            assert configuration is not None
            leader = min(self._detector.survivors((), now), default=self._me)
            again = self._timings.beat
            self._proposals.send(self._me, configuration.number, leader, now, again)
            self._leader.lead(now)
            if not self._outbox.to_itself:
                break
            message = self._outbox.to_itself.popleft()
            if message.at == configuration.number:
                self._handle(message, now)

    # Installing

    def _install(self, decision: Decision, now: float) -> None:
        configuration = decision.configuration
        numbers = tuple(server.number for server in configuration.servers)
        if self.configuration is not None and self.number not in numbers:
            self._leave(
                f"the other servers went on to configuration {configuration.number} without it",
                decision.results,
            )
            return
        is_first = self.configuration is None
        if is_first:
            self._detector = FailureDetector(self._me, self._timings, now)
            self._leader = Leader(self._me, self._timings, self._detector, self._outbox)
        else:
            self._step = decision
        self._outbox.disconnect_all_but(numbers, configuration.next_server)
        self._meet(configuration)
        self._installed_at = now
        self.configuration = configuration
        self._detector.enter(numbers, now)
        for server in configuration.servers:
            if server.number != self._me and server.address == self.address:
                self._detector.refused(server.number, now)  # this one, before it was excluded
        self._change = Change(self._me, configuration.number, self._outbox)
        self._leader.enter(configuration, self._change)
        self._outbox.ask(Install(configuration, decision.flush, self._me))
        if is_first:
            self._beat(configuration, now)
        self._settle_all(decision.results)
        self._proposals.send_again()

    def _meet(self, configuration: Configuration) -> None:
        """Have connections to all its servers."""
        self._leader.newcomers.keep(configuration)
        for server in configuration.servers:
            self._outbox.connect(server)

    def _settle_all(self, results: Sequence[ProposalResult]) -> None:
        for result in results:
            if result.origin == self._me:
                self._proposals.settle(
                    result.ticket, result.error, result.admitted, self.configuration
                )

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
        if not self.ended:
            self.ended = True
            self._proposals.refuse_all(reason)
            self._outbox.ask(Excluded(reason))
