"""What the oldest server does: gather what is asked for and who has to go, and begin changes."""

from __future__ import annotations

from collections.abc import Collection
from typing import final

from flexgroup.core.errors import PeerError
from flexgroup.membership.change import Attempt, Change
from flexgroup.membership.configuration import Configuration, Server
from flexgroup.membership.decision import Decision, Requested, carried_out
from flexgroup.membership.flush import merge_reports
from flexgroup.membership.messages import Prepared, Propose, Rejected
from flexgroup.membership.newcomers import Newcomers
from flexgroup.membership.next_configuration import concerned
from flexgroup.membership.operations import Admit, Merge, Renew, is_of_side
from flexgroup.membership.outbox import Outbox
from flexgroup.membership.side_view import flushes
from flexgroup.membership.suspicion import FailureDetector
from flexgroup.membership.timings import Timings


@final
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
        "_to_freeze",
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
        self._to_freeze: set[int] = set()
        """Domains that cannot be brought to an end by their stack: somewhere they are frozen
        already, or something that was under way does not arrive."""
        self.newcomers = Newcomers(timings, outbox)

    def enter(self, configuration: Configuration, change: Change, decision: Decision) -> None:
        """A configuration is installed; what was not decided is still asked for."""
        self._configuration = configuration
        self._change = change
        for request in decision.requests:
            self._proposals.pop((request.origin, request.ticket), None)
            if isinstance(request.operation, Merge):
                self._forget_before(request, configuration)
        present = {server.number for server in configuration.servers}
        # Those who have come back ask for something else now.
        present.difference_update([server for server, _ in decision.restarted])
        self._proposals = {k: p for k, p in self._proposals.items() if k[0] in present}
        self._refused.clear()
        self._stuck.clear()
        self._to_freeze.clear()

    def _forget_before(self, merge: Requested, configuration: Configuration) -> None:
        """What a server had asked for before it was apart, it has carried out in its side."""
        for key, proposal in list(self._proposals.items()):
            operation = proposal.operation
            is_of_it = isinstance(operation, Merge) or is_of_side(operation, configuration)
            if key[0] == merge.origin and key[1] < merge.ticket and is_of_it:
                del self._proposals[key]

    def proposed(self, proposal: Propose) -> None:
        key = proposal.sender, proposal.ticket
        if key in self._refused:
            self._outbox.send(proposal.sender, self._refused[key])
        elif key not in self._proposals:
            if isinstance(proposal.operation, Admit):
                self._supersede(proposal.operation.address)
            self._proposals[key] = proposal

    def _supersede(self, address: str) -> None:
        """The server at this address asks again, so it does not know any more of what it asked for
        before. Admitted for each time that it asked, it would count as several, which nobody can
        go on with."""
        for key, earlier in list(self._proposals.items()):
            if isinstance(earlier.operation, Admit) and earlier.operation.address == address:
                self.newcomers.drop(key)
                self._refuse(*key, ("superseded", "the server at this address has asked again"))

    def _refuse(self, origin: int, ticket: int, error: tuple[str, str]) -> None:
        self._proposals.pop((origin, ticket), None)
        rejected = Rejected(self._me, self._configuration.number, ticket, error)
        self._refused[origin, ticket] = rejected
        self._outbox.send(origin, rejected)

    def introduced(self, number: int, now: float) -> None:
        """A newcomer is reached at its address, so whoever had that before is dead.

        If that one has been heard since the newcomer asked, it is the same: admitted meanwhile for
        another time that it has asked.
        """
        newcomer = self.newcomers.introduced(number)
        if newcomer is None:
            return
        for server in self._configuration.servers:
            is_there = server.address == newcomer.server.address
            if is_there and not self._detector.was_heard_since(newcomer.since, server.number):
                self._detector.replaced(server.number, now)

    def check_newcomer(self, server: Server) -> None:
        """Raise PeerError for one that no server of this configuration introduces."""
        if server.number < self._configuration.next_server:
            raise PeerError(f"server {server.number} is no newcomer")

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
        is_complete = len(party) == len(self._configuration.servers)
        if is_complete and not (self._proposals or self.newcomers.are_known or change.is_under_way):
            return  # as a rule; it is asked at every tick
        if change.attempt is not None and not self._is_to_be_repeated(party, now):
            return
        party = tuple(server for server in party if server not in self._stuck)
        if not self._may_lead(party):
            return
        if not detector.is_settled(party, self._stuck, now):
            return
        self._introduce(now)
        if len(party) < len(self._configuration.servers) or change.is_under_way:
            self._begin(party, now)
        elif self._needs_change() and not detector.unheard_for(2 * self._timings.beat, now):
            # Who has just been stopped would hold up the groups that the change concerns.
            self._begin(party, now)

    def _begin(self, party: tuple[int, ...], now: float) -> None:
        """Begin an attempt, which freezes what cannot be brought to an end by its stack."""
        before = self._configuration
        missing = {server.number for server in before.servers}.difference(party)
        freeze = self._to_freeze.copy()
        freeze.update(d.number for d in before.domains if missing.intersection(d.servers))
        if missing:
            self._change.begin(party, now, (), freeze)
            return
        requests = self._requests()
        for request in requests:
            if isinstance(request.operation, Renew):
                ends = {request.origin, request.operation.server}
                freeze.update(d.number for d in before.domains if ends.issubset(d.servers))
        freeze |= self._left_by(requests)
        following, _ = carried_out(before, Decision(before.number + 1, requests))
        ending, groups = concerned(before, following)
        if freeze:
            freeze |= ending | self._domains_of(groups)
            self._change.begin(party, now, requests, freeze)
        else:
            self._change.begin(party, now, requests, (), ending, groups)

    def _left_by(self, requests: Collection[Requested]) -> set[int]:
        """The domains that servers take no part in which come from a side."""
        merging = {r.origin for r in requests if isinstance(r.operation, Merge)}
        return {
            domain.number
            for domain in (self._configuration.domains if merging else ())
            if domain.partitionable and merging.intersection(domain.servers)
        }

    def _domains_of(self, groups: Collection[int]) -> set[int]:
        before = self._configuration
        keys = {group.domain_key for group in before.groups if group.number in groups}
        return {domain.number for domain in before.domains if domain.key in keys}

    def _domains_with(self, servers: Collection[int]) -> set[int]:
        domains = self._configuration.domains
        return {d.number for d in domains if any(server in servers for server in d.servers)}

    def _may_lead(self, party: tuple[int, ...]) -> bool:
        servers = tuple(server.number for server in self._configuration.servers)
        return party[:1] == (self._me,) and self._detector.may_continue(party, servers)

    def _is_to_be_repeated(self, party: tuple[int, ...], now: float) -> bool:
        """Whether the attempt that is under way cannot succeed any more."""
        attempt = self._change.attempt
        assert attempt is not None
        if attempt.overtaken is not None:
            return now - attempt.overtaken >= self._timings.beat
        if not all(server in party for server in attempt.party):
            return True
        since = max(attempt.since, self._detector.awake_since)
        if attempt.is_waiting_for_messages:
            if now - since >= 2 * self._timings.beat:
                # Something that was under way does not arrive.
                self._to_freeze.update(attempt.hold, self._domains_of(attempt.hold_groups))
                return True
            return False
        late = [s for s in attempt.missing() if self._detector.has_had_time(s, since, now)]
        self._stuck.update(server for server in late if server != self._me)
        return bool(late)

    def may_soon_exclude(self, server: int, now: float) -> bool:
        """Whether a server that is heard may have to go before long, since it does not answer.
        It is not told any more that it is heard."""
        if server in self._stuck:
            return True
        attempt = self._change.attempt
        if attempt is None or server not in attempt.missing():
            return False
        since = max(attempt.since, self._detector.awake_since)
        return not self._detector.is_confirmed(server, since, now)

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
        requests = self._requests()
        if not requests:
            return False
        before = self._configuration
        _, results = carried_out(before, Decision(before.number + 1, requests))
        if any(result.error is None for result in results):
            return True
        for result in results:
            if result.error is not None:
                self._refuse(result.origin, result.ticket, result.error)
        return False

    def _requests(self) -> tuple[Requested, ...]:
        """What is proposed, except by newcomers that are not reached yet."""
        requests = []
        for key, proposal in self._proposals.items():
            newcomer = self.newcomers.ready(key)
            if newcomer is not None or not isinstance(proposal.operation, Admit):
                requests.append(Requested(*key, proposal.operation, proposal.group, newcomer))
        return tuple(requests)

    def _requests_now(self, attempt: Attempt) -> tuple[Requested, ...]:
        """What the attempt is about, with what was proposed since and concerns nothing else."""
        if not attempt.requests:
            return ()
        before = self._configuration
        requests = self._requests()
        following, _ = carried_out(before, Decision(before.number + 1, requests))
        ending, groups = concerned(before, following)
        stopped = {*attempt.freeze, *attempt.hold}
        is_renewal = any(isinstance(request.operation, Renew) for request in requests)
        if not self._left_by(requests) <= {*attempt.freeze}:
            return attempt.requests
        if is_renewal or not ending | self._domains_of(groups - {*attempt.hold_groups}) <= stopped:
            return attempt.requests
        return requests

    def prepared(self, message: Prepared, now: float) -> bool:
        """A server has stopped what the change concerns. When all have, a decision is offered.

        False: others may have gone on, by a decision that this server cannot follow.
        """
        attempt = self._change.on_prepared(message)
        if attempt is None:
            return True
        decision = attempt.accepted_before()
        if decision is not None and attempt.lacking(decision):
            return self._leave_to_others(attempt, decision, now)
        if decision is None:
            frozen = attempt.frozen_somewhere() | self._domains_with(attempt.restarted())
            if not frozen.issubset(attempt.freeze):
                self._to_freeze |= frozen
                self._begin(attempt.party, now)
                return True
            decision = self._compose(attempt)
        self._change.offer(attempt, decision)
        return True

    def _leave_to_others(self, attempt: Attempt, decision: Decision, now: float) -> bool:
        """Have a decision completed by those of the party who can; False: this server cannot."""
        lacking = attempt.lacking(decision)
        able = tuple(server for server in attempt.party if server not in lacking)
        servers = tuple(server.number for server in self._configuration.servers)
        if not self._detector.may_continue(able, servers):
            attempt.overtaken = now  # more of them may be heard before it is made again
        elif self._me in lacking:
            return False
        else:
            self._begin(able, now)
        return True

    def _compose(self, attempt: Attempt) -> Decision:
        before = self._configuration
        reports = attempt.reports()
        restarted = attempt.restarted()
        known = {server: report for server, report in reports.items() if server not in restarted}
        # What a server asked for before it was started again, nobody waits for.
        requests = [r for r in self._requests_now(attempt) if r.origin not in restarted]
        parts = [r.operation.part for r in requests if isinstance(r.operation, Merge)]
        return Decision(
            before.number + 1,
            tuple(requests),
            tuple(server.number for server in before.servers if server.number not in reports),
            attempt.freeze,
            merge_reports(before, known, attempt.freeze) + flushes(parts),
            tuple(
                (group, server, count)
                for server in sorted(reports)
                for group, count in reports[server].casts
                if attempt.is_orderly
            ),
            tuple(sorted(restarted.items())),
            attempt.ballot,
            tuple(server for server in sorted(reports) if reports[server].left),
        )
