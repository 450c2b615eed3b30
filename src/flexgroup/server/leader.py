"""What the oldest server does: gather what is asked for and who has to go, and begin changes."""

from __future__ import annotations

from flexgroup.server.change import Change, Send
from flexgroup.server.configuration import Configuration
from flexgroup.server.control import (
    Admit,
    Decision,
    DomainReport,
    Outcome,
    Reply,
    Request,
)
from flexgroup.server.leftovers import merge_reports
from flexgroup.server.newcomers import Newcomers
from flexgroup.server.operations import NextConfiguration
from flexgroup.server.suspicion import Hearing, Timings, may_continue


class Leader:
    """Every server has one; it acts only where it is the oldest of those that should go on."""

    __slots__ = (
        "_change",
        "_configuration",
        "_hearing",
        "_me",
        "_refused",
        "_requests",
        "_send",
        "_stuck",
        "_timings",
        "newcomers",
    )

    def __init__(
        self,
        me: int,
        timings: Timings,
        hearing: Hearing,
        send: Send,
        newcomers: Newcomers,
    ) -> None:
        self._me = me
        self._timings = timings
        self._hearing = hearing
        self._send = send
        self._configuration: Configuration
        self._change: Change
        self._requests: dict[tuple[int, int], Request] = {}
        """By the server that asks, and its ticket; in the order they came."""
        self._refused: dict[tuple[int, int], Reply] = {}
        """A request that comes again while its refusal is under way is not to succeed."""
        self._stuck: set[int] = set()
        """Servers that are heard but did not answer in a change."""
        self.newcomers = newcomers

    def enter(self, configuration: Configuration, change: Change) -> None:
        """A configuration is installed. What is still asked for will be asked for again."""
        self._configuration = configuration
        self._change = change
        self._requests.clear()
        self._refused.clear()
        self._stuck.clear()

    def asked(self, request: Request) -> None:
        key = request.sender, request.ticket
        if key in self._refused:
            self._send(request.sender, self._refused[key])
        else:
            self._requests.setdefault(key, request)

    def _refuse(self, origin: int, ticket: int, error: tuple[str, str]) -> None:
        self._requests.pop((origin, ticket), None)
        reply = Reply(self._me, self._configuration.number, ticket, error)
        self._refused[origin, ticket] = reply
        self._send(origin, reply)

    def introduced(self, number: int, now: float) -> None:
        """A newcomer is reached at its address, so nobody else is there any more."""
        address = self.newcomers.introduced(number)
        for server in self._configuration.servers:
            if server.address == address:
                self._hearing.refused(server.number, now)

    def lead(self, now: float) -> None:
        """Begin a change if it is up to this server and there is a reason."""
        hearing = self._hearing
        change = self._change
        party = hearing.survivors(self._stuck, now)
        if self._stuck and not self._may_lead(party):
            self._stuck.clear()  # better wait for them than have nobody who may go on
            party = hearing.survivors((), now)
        if not party or party[0] != self._me:
            change.attempt = None
            self.newcomers.forget()
            return
        if change.attempt is not None and not self._is_to_be_repeated(party, now):
            return
        party = tuple(server for server in party if server not in self._stuck)
        if not self._may_lead(party):
            return
        if not hearing.is_settled(party, self._stuck, now):
            return
        self._introduce(now)
        if (
            len(party) < len(self._configuration.servers)
            or change.is_under_way
            or self._needs_change()
        ):
            change.begin(party, now)

    def _may_lead(self, party: tuple[int, ...]) -> bool:
        servers = tuple(server.number for server in self._configuration.servers)
        return party[:1] == (self._me,) and may_continue(party, servers, self._hearing.gone)

    def _is_to_be_repeated(self, party: tuple[int, ...], now: float) -> bool:
        """Whether the attempt that is under way cannot succeed any more."""
        attempt = self._change.attempt
        assert attempt is not None
        since = max(attempt.since, self._hearing.awake_since)
        if now - since >= self._timings.patience:
            self._stuck.update(server for server in attempt.missing() if server != self._me)
            return True
        if attempt.overtaken is not None:
            return now - attempt.overtaken >= self._timings.beat
        return not all(server in party for server in attempt.party)

    def _introduce(self, now: float) -> None:
        """See whether servers that want to join are reached where they say they are."""
        for key, request in list(self._requests.items()):
            wish = request.operation
            if not isinstance(wish, Admit):
                continue
            namesake = self.newcomers.namesake(key, wish, self._configuration)
            if namesake is not None:
                reason = f"there is another server {namesake!r}; choose another --name"
                self._refuse(*key, ("name-taken", reason))
            else:
                self.newcomers.meet(key, wish, self._configuration, self._me, now)
        for origin, ticket in self.newcomers.unreachable(now):
            self.newcomers.drop((origin, ticket))
            reason = "not all servers reach the new one at the address it gave"
            self._refuse(origin, ticket, ("unreachable", reason))

    def _needs_change(self) -> bool:
        """Whether anything is to be carried out; what is refused anyway is refused now."""
        outcomes = self._apply_requests(NextConfiguration(self._configuration))
        if any(outcome.error is None for outcome in outcomes):
            return True
        for outcome in outcomes:
            if outcome.error is not None:
                self._refuse(outcome.origin, outcome.ticket, outcome.error)
        return False

    def _apply_requests(self, following: NextConfiguration) -> list[Outcome]:
        outcomes = []
        for (origin, ticket), request in self._requests.items():
            if not isinstance(request.operation, Admit):
                error = following.apply(origin, request.operation, request.group)
                outcomes.append(Outcome(origin, ticket, error))
            else:
                server = self.newcomers.ready((origin, ticket))
                if server is not None:
                    following.admit(server)
                    outcomes.append(Outcome(origin, ticket, None, server.number))
        return outcomes

    def compose(self, reports: dict[int, list[DomainReport]]) -> Decision:
        """The next configuration, of the party that has reported and those it admits."""
        before = self._configuration
        following = NextConfiguration(before)
        following.without({s.number for s in before.servers if s.number not in reports})
        # A newcomer whose contact fails is not admitted.
        for key in [key for key in self._requests if key[0] not in reports]:
            del self._requests[key]
        outcomes = self._apply_requests(following)
        return Decision(following.finish(), merge_reports(before, reports), outcomes)
