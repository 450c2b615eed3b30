"""The group of servers, at one server: a state machine without input, output or clock.

The host tells it what happens (with the time, in seconds that only go forward) and carries out
the effects it asks for. docs/membership.md describes the protocol. The oldest server that is
not suspected leads: it gathers what is asked for and who has to go, and leads the change to the
next configuration (`flexgroup.server.change`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from flexgroup.core.errors import PeerError
from flexgroup.server.change import Change
from flexgroup.server.configuration import Configuration, Server
from flexgroup.server.control import (
    Accept,
    Accepted,
    Admit,
    Admitted,
    AnyOperation,
    AskToJoin,
    Beat,
    Commit,
    ControlMessage,
    Decided,
    Decision,
    DomainReport,
    FromMember,
    Introduce,
    Introduced,
    Meet,
    NotAdmitted,
    NotMember,
    Outcome,
    Overtaken,
    Prepare,
    Prepared,
    Reply,
    Request,
)
from flexgroup.server.effects import (
    Connect,
    Disconnect,
    Effect,
    Excluded,
    Freeze,
    Install,
    SendOn,
    SendTo,
)
from flexgroup.server.leader import Leader
from flexgroup.server.newcomers import Introductions, Newcomers
from flexgroup.server.suspicion import NEVER, Hearing, Timings
from flexgroup.server.wishes import Wishes

__all__ = ["Membership", "Timings"]


class Membership:
    def __init__(self, name: str, address: str, timings: Timings) -> None:
        self.name = name
        self.address = address
        self.configuration: Configuration | None = None
        self.number: int | None = None
        self.ended = False
        """This server has left or was excluded; it says and does nothing more."""
        self._timings = timings
        self._effects: list[Effect] = []
        self._to_myself: deque[FromMember] = deque()
        self._connected: dict[int, Server] = {}
        self._introductions: dict[int, Introductions] = {}
        self._wishes = Wishes(self._emit)
        self._beaten = NEVER
        self._step: Decision | None = None
        """The one that led to the installed configuration, for servers that missed it."""
        self._installed_at = NEVER
        # From the first configuration on:
        self._hearing: Hearing
        self._change: Change
        self._leader: Leader

    def take_effects(self) -> list[Effect]:
        taken, self._effects = self._effects, []
        return taken

    def _emit(self, effect: Effect) -> None:
        self._effects.append(effect)

    # Beginning

    def found(self, now: float) -> None:
        """Be the first server."""
        me = Server(1, self.name, self.address)
        self.number = me.number
        first = Configuration(1, (me,), (), next_server=2, next_group=1)
        self._install(Decision(first, [], []), now)

    def join(self, now: float) -> None:
        """Ask the contact to be admitted; the host has a link to it."""
        self._emit(SendOn(None, AskToJoin(self.name, self.address)))

    def contact_lost(self, now: float) -> None:
        if self.configuration is None:
            self._exclude(
                "the server that was asked to admit this one closed the connection, or failed; "
                "if it runs, its log says why (TLS, another version)"
            )

    def request(self, operation: AnyOperation, now: float) -> int:
        """Ask for a change; the effect Answer with the returned ticket tells how it ended."""
        if self.ended or self.configuration is None:
            state = "has left the group of servers" if self.ended else "is not admitted yet"
            return self._wishes.refuse(f"this server {state}; try again later")
        ticket = self._wishes.add(operation, self.configuration, None)
        self._go_on(now)
        return ticket

    # What the host sees of other servers

    def heard(self, server: int, now: float) -> None:
        if self.configuration is not None:
            self._hearing.passes(now)
            self._hearing.heard(server, now)

    def link_lost(self, server: int, gone: bool, now: float) -> None:
        if self.configuration is None or self.ended:
            return
        self._hearing.passes(now)
        if gone:
            self._hearing.refused(server, now)
            self._go_on(now)

    def frozen(self, change: int, report: list[DomainReport], now: float) -> None:
        if not self.ended and self.configuration and change == self.configuration.number + 1:
            self._change.frozen(report)
            self._go_on(now)

    def tick(self, now: float) -> None:
        configuration = self.configuration
        if configuration is None or self.ended:
            return
        self._hearing.passes(now)
        if self._hearing.is_isolated(now):
            self._exclude("too few of the other servers are heard to go on")
            return
        if now - self._beaten >= self._timings.beat:
            self._beat(configuration, now)
        attempt = self._change.attempt
        if attempt is not None and now - attempt.sent >= self._timings.beat:
            self._change.repeat(now)
        self._go_on(now)

    def _beat(self, configuration: Configuration, now: float) -> None:
        self._beaten = now
        for server in configuration.servers:
            if server.number != self._me:
                self._beat_to(server.number, configuration, now)

    def _beat_to(self, server: int, configuration: Configuration, now: float) -> None:
        echo, silent = self._hearing.echo(server), self._hearing.silent(now)
        beat = Beat(self._me, configuration.number, now, echo, silent, self._change.promised)
        self._emit(SendTo(server, beat))

    @property
    def _me(self) -> int:
        assert self.number is not None
        return self.number

    # Messages

    def received(
        self, link: object, server: int | None, message: ControlMessage, now: float
    ) -> None:
        if self.ended:
            return
        match message:
            case AskToJoin():
                if self.configuration is None:
                    why = "the server asked is not admitted itself; try again, or ask another"
                    self._emit(SendOn(link, NotAdmitted(why)))
                else:
                    admit = Admit(message.name, message.address)
                    self._wishes.add(admit, self.configuration, link)
                    self._go_on(now)
            case Introduce() if self.configuration is None:
                met = self._introductions.setdefault(message.number, Introductions())
                self._effects += met.met(link, message)
            case Introduced():
                if self.configuration is not None:
                    self._leader.introduced(message.number, now)
                    self._go_on(now)
            case Admitted() if self.configuration is None:
                self.number = message.number
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

    def _is_of_this_configuration(self, link: object, message: FromMember, now: float) -> bool:
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
                self._emit(SendOn(link, answer))
        elif (
            message.at == configuration.number - 1
            and self._step is not None
            # Before, the commit may be on its way.
            and now - self._installed_at >= self._timings.beat
        ):
            self._send(sender, Decided(self._me, configuration.number, self._step))
        return False

    def _send(self, server: int, message: ControlMessage) -> None:
        if server != self.number:
            self._emit(SendTo(server, message))
        else:
            assert isinstance(message, FromMember)
            self._to_myself.append(message)

    def _handle(self, message: FromMember, now: float) -> None:
        match message:
            case Beat():
                self._hearing.beaten(message.sender, message.sent, message.echo, message.silent)
                self._change.saw(message.promised, now)
                if message.echo == NEVER and self.configuration is not None:
                    # It is new, and does not know yet whether it is heard.
                    self._beat_to(message.sender, self.configuration, now)
            case Meet():
                self._connect(message.server)
                number = message.server.number
                self._send(number, Introduce(self._me, message.at, number, ()))
            case Request():
                self._leader.asked(message)
            case Reply():
                self._wishes.settle(message.ticket, message.error)
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
            leader = min(self._hearing.survivors((), now), default=self._me)
            again = self._timings.beat
            self._wishes.ask(self._me, configuration.number, leader, self._send, now, again)
            self._leader.lead(now)
            if not self._to_myself:
                break
            message = self._to_myself.popleft()
            if message.at == configuration.number:
                self._handle(message, now)

    # Installing

    def _install(self, decision: Decision, now: float) -> None:
        configuration = decision.configuration
        numbers = tuple(server.number for server in configuration.servers)
        if self.configuration is not None and self.number not in numbers:
            self._leave(
                f"the other servers went on to configuration {configuration.number} without it",
                decision.outcomes,
            )
            return
        is_first = self.configuration is None
        if is_first:
            self._hearing = Hearing(self._me, self._timings, now)
            newcomers = Newcomers(self._timings, self._send, self._connect, self._disconnect)
            self._leader = Leader(self._me, self._timings, self._hearing, self._send, newcomers)
        else:
            self._step = decision
        for number in list(self._connected):
            if number not in numbers and number < configuration.next_server:
                self._disconnect(number)
        self._meet(configuration)
        self._installed_at = now
        self.configuration = configuration
        self._hearing.enter(numbers, now)
        for server in configuration.servers:
            if server.number != self._me and server.address == self.address:
                self._hearing.refused(server.number, now)  # this one, before it was excluded
        self._change = Change(self._me, configuration.number, self._send, self._freeze)
        self._leader.enter(configuration, self._change)
        self._emit(Install(configuration, decision.leftovers, self._me))
        if is_first:
            self._beat(configuration, now)
        self._settle_all(decision.outcomes)
        self._wishes.ask_again()

    def _meet(self, configuration: Configuration) -> None:
        """Have connections to all its servers."""
        self._leader.newcomers.keep(configuration)
        for server in configuration.servers:
            self._connect(server)

    def _connect(self, server: Server) -> None:
        known = self._connected.get(server.number)
        if known != server and server.address != self.address:
            if known is not None:  # somebody else who would have had that number
                self._emit(Disconnect(server.number))
            self._connected[server.number] = server
            self._emit(Connect(server))

    def _disconnect(self, number: int) -> None:
        if self._connected.pop(number, None) is not None:
            self._emit(Disconnect(number))

    def _freeze(self) -> None:
        assert self.configuration is not None
        self._emit(Freeze(self.configuration.number + 1))

    def _settle_all(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            if outcome.origin == self._me:
                self._wishes.settle(
                    outcome.ticket, outcome.error, outcome.admitted, self.configuration
                )

    # Ending

    def _leave(self, reason: str, outcomes: Sequence[Outcome] = ()) -> None:
        """The others go on without this server, as it asked for or not."""
        asked = self._wishes.to_leave()
        # A newcomer is not admitted through a server that goes itself.
        self._settle_all([outcome for outcome in outcomes if outcome.admitted is None])
        for ticket in asked:
            self._wishes.settle(ticket, None)
        if asked:
            self.ended = True
            self._wishes.refuse_all("this server has left the group of servers")
        else:
            self._exclude(reason)

    def _exclude(self, reason: str) -> None:
        if not self.ended:
            self.ended = True
            self._wishes.refuse_all(reason)
            self._emit(Excluded(reason))
