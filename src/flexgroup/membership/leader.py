"""What the oldest server does: gather what is asked for and who has to go, and begin changes."""

from __future__ import annotations

from flexgroup.membership.change import Change
from flexgroup.membership.configuration import Configuration
from flexgroup.membership.effects import Outbox
from flexgroup.membership.flush import DomainReport, merge_reports
from flexgroup.membership.messages import (
    Decision,
    ProposalResult,
    Propose,
    Rejected,
)
from flexgroup.membership.newcomers import Newcomers
from flexgroup.membership.operations import Admit, NextConfiguration
from flexgroup.membership.suspicion import FailureDetector, Timings, may_continue


class Leader:
    """Every server has one; it acts only where it is the oldest of those that should go on."""

    __slots__ = (
        "_change",
        "_configuration",
        "_detector",
        "_me",
        "_outbox",
        "_proposals",
        "_refused",
        "_stuck",
        "_timings",
        "newcomers",
    )

    def __init__(
        self,
        me: int,
        timings: Timings,
        detector: FailureDetector,
        outbox: Outbox,
    ) -> None:
        self._me = me
        self._timings = timings
        self._detector = detector
        self._outbox = outbox
        self._configuration: Configuration
        self._change: Change
        self._proposals: dict[tuple[int, int], Propose] = {}
        """What was proposed, in the order it came, by the server that asks and its ticket."""
        self._refused: dict[tuple[int, int], Rejected] = {}
        """A proposal that comes again while its refusal is under way is not to succeed."""
        self._stuck: set[int] = set()
        """Servers that are heard but did not answer in a change."""
        self.newcomers = Newcomers(timings, outbox)

    def enter(self, configuration: Configuration, change: Change) -> None:
        """A configuration is installed. What is still asked for will be asked for again."""
        self._configuration = configuration
        self._change = change
        self._proposals.clear()
        self._refused.clear()
        self._stuck.clear()

    def proposed(self, proposal: Propose) -> None:
        key = proposal.sender, proposal.ticket
        if key in self._refused:
            self._outbox.send(proposal.sender, self._refused[key])
        else:
            self._proposals.setdefault(key, proposal)

    def _refuse(self, origin: int, ticket: int, error: tuple[str, str]) -> None:
        self._proposals.pop((origin, ticket), None)
        rejected = Rejected(self._me, self._configuration.number, ticket, error)
        self._refused[origin, ticket] = rejected
        self._outbox.send(origin, rejected)

    def introduced(self, number: int, now: float) -> None:
        """A newcomer is reached at its address, so nobody else is there any more."""
        address = self.newcomers.introduced(number)
        for server in self._configuration.servers:
            if server.address == address:
                self._detector.refused(server.number, now)

    def lead(self, now: float) -> None:
        """Begin a change if it is up to this server and there is a reason."""
        detector = self._detector
        change = self._change
        party = detector.survivors(self._stuck, now)
        if self._stuck and not self._may_lead(party):
            self._stuck.clear()  # better wait for them than have nobody who may go on
            party = detector.survivors((), now)
        if not party or party[0] != self._me:
            change.attempt = None
            self.newcomers.forget()
            return
        if change.attempt is not None and not self._is_to_be_repeated(party, now):
            return
        party = tuple(server for server in party if server not in self._stuck)
        if not self._may_lead(party):
            return
        if not detector.is_settled(party, self._stuck, now):
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
        return party[:1] == (self._me,) and may_continue(party, servers, self._detector.gone)

    def _is_to_be_repeated(self, party: tuple[int, ...], now: float) -> bool:
        """Whether the attempt that is under way cannot succeed any more."""
        attempt = self._change.attempt
        assert attempt is not None
        if attempt.overtaken is not None:
            return now - attempt.overtaken >= self._timings.beat
        since = max(attempt.since, self._detector.awake_since)
        if now - since >= self._timings.patience:
            self._stuck.update(server for server in attempt.missing() if server != self._me)
            return True
        return not all(server in party for server in attempt.party)

    def _introduce(self, now: float) -> None:
        """See whether servers that want to join are reached where they say they are."""
        for key, proposal in list(self._proposals.items()):
            admit = proposal.operation
            if not isinstance(admit, Admit):
                continue
            namesake = self.newcomers.namesake(key, admit, self._configuration)
            if namesake is not None:
                reason = f"there is another server {namesake!r}; choose another --name"
                self._refuse(*key, ("name-taken", reason))
            else:
                self.newcomers.meet(key, admit, self._configuration, self._me, now)
        for origin, ticket in self.newcomers.unreachable(now):
            self.newcomers.drop((origin, ticket))
            reason = "not all servers reach the new one at the address it gave"
            self._refuse(origin, ticket, ("unreachable", reason))

    def _needs_change(self) -> bool:
        """Whether anything is to be carried out; what is refused anyway is refused now."""
        results = self._apply_proposals(NextConfiguration(self._configuration))
        if any(result.error is None for result in results):
            return True
        for result in results:
            if result.error is not None:
                self._refuse(result.origin, result.ticket, result.error)
        return False

    def _apply_proposals(self, following: NextConfiguration) -> list[ProposalResult]:
        results = []
        for (origin, ticket), proposal in self._proposals.items():
            if not isinstance(proposal.operation, Admit):
                error = following.apply(origin, proposal.operation, proposal.group)
                results.append(ProposalResult(origin, ticket, error))
            else:
                server = self.newcomers.ready((origin, ticket))
                if server is not None:
                    following.admit(server)
                    results.append(ProposalResult(origin, ticket, None, server.number))
        return results

    def compose(self, reports: dict[int, list[DomainReport]]) -> Decision:
        """The next configuration, of the party that has reported and those it admits."""
        before = self._configuration
        following = NextConfiguration(before)
        following.without({s.number for s in before.servers if s.number not in reports})
        # A newcomer whose contact fails is not admitted.
        for key in [key for key in self._proposals if key[0] not in reports]:
            del self._proposals[key]
        results = self._apply_proposals(following)
        return Decision(following.finish(), merge_reports(before, reports), results)
