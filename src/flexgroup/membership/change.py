"""The step from one configuration to the next, agreed on by the servers of the old one.

A leader's attempt has three rounds: Prepare (stop what the change concerns, and report), Accept
(here is what changes, with what is left to deliver), Commit (all have it). An attempt needs
*every* server of its party, and parties that may go on have a common member; so a later attempt,
which asks first what was accepted, finds whatever an earlier one may have committed, and completes
it. This is the synod of Paxos with parties in the place of majorities.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import final

from flexgroup.core.errors import PeerError
from flexgroup.membership.configuration import Configuration
from flexgroup.membership.decision import Decision, Requested, carried_out
from flexgroup.membership.effects import Drain, Freeze
from flexgroup.membership.flush import Report
from flexgroup.membership.messages import (
    NO_BALLOT,
    Accept,
    Accepted,
    Ballot,
    Commit,
    ControlMessage,
    Overtaken,
    Prepare,
    Prepared,
)
from flexgroup.membership.outbox import Outbox
from flexgroup.membership.stable import AcceptedDecision, Promised

MOST_ROUNDS_MISSED = 1 << 20


@final
class Attempt:
    """One attempt of a leader to make a change."""

    __slots__ = (
        "accepted",
        "ballot",
        "decision",
        "freeze",
        "hold",
        "hold_groups",
        "overtaken",
        "party",
        "prepared",
        "requests",
        "sent",
        "since",
    )

    def __init__(
        self,
        ballot: Ballot,
        party: tuple[int, ...],
        now: float,
        requests: tuple[Requested, ...] = (),
        freeze: Collection[int] = (),
        hold: Collection[int] = (),
        hold_groups: Collection[int] = (),
    ) -> None:
        self.ballot = ballot
        self.party = party
        self.since = now
        self.sent = now
        self.requests = requests
        self.freeze = tuple(sorted(freeze))
        self.hold = tuple(sorted(hold))
        self.hold_groups = tuple(sorted(hold_groups))
        self.prepared: dict[int, Prepared] = {}
        self.decision: Decision | None = None
        self.accepted: set[int] = set()
        self.overtaken: float | None = None
        """When a higher ballot became known, if one did."""

    @property
    def is_orderly(self) -> bool:
        """Nothing is frozen: what is under way is delivered by its stack before the change."""
        return not self.freeze

    @property
    def is_waiting_for_messages(self) -> bool:
        """Messages have to be delivered before the decision is accepted everywhere."""
        return self.is_orderly and self.decision is not None and bool(self.decision.casts)

    def missing(self) -> tuple[int, ...]:
        """The servers whose answer the current round waits for."""
        answered = self.prepared if self.decision is None else self.accepted
        return tuple(server for server in self.party if server not in answered)

    def reports(self) -> dict[int, Report]:
        return {server: answer.report for server, answer in self.prepared.items()}

    def frozen_somewhere(self) -> set[int]:
        """The domains that at least one server cannot go on with."""
        return {
            number
            for answer in self.prepared.values()
            for number in (*[d.domain for d in answer.report.domains], *answer.report.left)
        }

    def restarted(self) -> dict[int, int]:
        """The servers that have come back without what their domains had, and how often."""
        return {
            server: answer.report.restarted
            for server, answer in self.prepared.items()
            if answer.report.restarted
        }

    def accepted_before(self) -> Decision | None:
        """What an earlier attempt may have committed.

        What was accepted last is proposed again, as a rule. But a server accepts a decision that
        waits for messages only when it has delivered them, which those that have not accepted may
        never do now. Then it was not committed either, since that takes all of its party; unless
        it was proposed again, to those who had accepted it.
        """
        accepted = [a.accepted for a in self.prepared.values() if a.accepted is not None]
        if not accepted:
            return None
        ballot, last = max(accepted, key=lambda pair: pair[0])
        is_first_time = ballot == last.ballot
        return None if is_first_time and self.lacking(last) else last

    def lacking(self, decision: Decision) -> tuple[int, ...]:
        """Those who may never have the messages that a decision waits for."""
        if not decision.casts:
            return ()
        return tuple(
            server
            for server, answer in self.prepared.items()
            if server not in decision.without
            and (answer.accepted is None or answer.accepted[1] != decision)
        )


@final
class Change:
    """The change that follows configuration `at`, as one of its servers sees it."""

    __slots__ = (
        "_at",
        "_me",
        "_offered",
        "_outbox",
        "_round",
        "accepted",
        "attempt",
        "promised",
    )

    def __init__(self, me: int, at: int, outbox: Outbox) -> None:
        self._me = me
        self._at = at
        self._outbox = outbox
        self._round = 0
        self.promised: Ballot = NO_BALLOT
        self._offered: tuple[Ballot, Decision] | None = None
        """What is accepted as soon as the messages are delivered that it waits for."""
        self.accepted: tuple[Ballot, Decision] | None = None
        self.attempt: Attempt | None = None

    @property
    def is_under_way(self) -> bool:
        """Somebody has begun a change, as far as is known here."""
        return self._round > 0

    def restore(self, promised: Ballot, accepted: tuple[Ballot, Decision] | None) -> None:
        """Take part again as before this server was started again."""
        self.promised = promised
        self.accepted = accepted
        self._round = promised[0] + 1  # in case that it led an attempt which it has not followed

    def suspend(self, domains: tuple[int, ...]) -> None:
        """Stand still, since others may have gone on: only a change leads out of that.

        A ballot that nobody leads is promised, which the others are told with every beat; so
        whoever leads when enough servers hear each other again begins a change.
        """
        if self.promised == NO_BALLOT:
            self._round += 1
            self.promised = (self._round, self._me)
        self._outbox.ask(Freeze(self._at + 1, self.promised, domains))

    # Leading

    def begin(
        self,
        party: tuple[int, ...],
        now: float,
        requests: tuple[Requested, ...] = (),
        freeze: Collection[int] = (),
        hold: Collection[int] = (),
        hold_groups: Collection[int] = (),
    ) -> None:
        self._round += 1
        ballot = self._round, self._me
        self.attempt = Attempt(ballot, party, now, requests, freeze, hold, hold_groups)
        self._ask(self.attempt)

    def repeat(self, now: float) -> None:
        """What has not been answered may have been lost, and so may what was decided."""
        if self.attempt is not None:
            self.attempt.sent = now
            self._ask(self.attempt)

    def _ask(self, attempt: Attempt) -> None:
        message: ControlMessage
        to = attempt.missing()
        if attempt.decision is None:
            message = Prepare(
                self._me,
                self._at,
                attempt.ballot,
                attempt.freeze,
                attempt.hold,
                attempt.hold_groups,
            )
        elif to:
            message = Accept(self._me, self._at, attempt.ballot, attempt.decision)
        else:
            message = Commit(self._me, self._at, attempt.ballot)
            to = tuple(server for server in attempt.party if server != self._me)
        for server in to:
            self._outbox.send(server, message)

    def check_ballot(self, ballot: Ballot, leader: int | None = None) -> None:
        """Raise PeerError if so many attempts cannot have been made since any that is known, or if
        another server than this one leads it."""
        if not 0 <= ballot[0] <= self._round + MOST_ROUNDS_MISSED:
            raise PeerError(f"a change in round {ballot[0]}, after round {self._round}")
        if leader not in (None, ballot[1]):
            raise PeerError(f"server {leader} leads a change of another")

    def saw(self, ballot: Ballot, now: float) -> None:
        """Somebody follows this ballot."""
        self._round = max(self._round, ballot[0])
        attempt = self.attempt
        if attempt is not None and ballot > attempt.ballot and attempt.overtaken is None:
            attempt.overtaken = now

    def on_prepared(self, message: Prepared) -> Attempt | None:
        """The attempt for which a decision is to be offered, now that all have answered."""
        attempt = self.attempt
        if attempt is None or message.ballot != attempt.ballot or attempt.decision is not None:
            return None
        attempt.prepared[message.sender] = message
        return None if attempt.missing() else attempt

    def offer(self, attempt: Attempt, decision: Decision) -> None:
        attempt.decision = decision
        self._ask(attempt)

    def on_accepted(self, message: Accepted) -> Decision | None:
        """What is decided, now that all of the party have accepted it."""
        attempt = self.attempt
        if attempt is None or message.ballot != attempt.ballot or attempt.decision is None:
            return None
        attempt.accepted.add(message.sender)
        if attempt.missing():
            return None
        self._ask(attempt)
        return attempt.decision

    # Following

    def on_prepare(self, message: Prepare) -> None:
        if message.ballot < self.promised:
            self._outbox.send(message.sender, Overtaken(self._me, self._at, self.promised))
            return
        if message.ballot > self.promised:
            self._outbox.save(Promised(message.ballot))
        self.promised = message.ballot
        self._outbox.ask(
            Freeze(self._at + 1, self.promised, message.freeze, message.hold, message.hold_groups)
        )

    def frozen(self, ballot: Ballot, report: Report) -> None:
        """What an attempt concerns has stopped; another may have begun meanwhile."""
        if ballot == self.promised:
            self._outbox.send(
                ballot[1], Prepared(self._me, self._at, ballot, report, self.accepted)
            )

    def on_accept(self, message: Accept) -> bool:
        if message.ballot < self.promised:
            self._outbox.send(message.sender, Overtaken(self._me, self._at, self.promised))
            return False
        self.promised = message.ballot
        self._offered = message.ballot, message.decision
        if message.decision.casts and not self.has_accepted(message.decision):
            self._outbox.ask(Drain(self._at + 1, message.ballot, message.decision.casts))
        else:
            self.drained(message.ballot)
        return True

    def drained(self, ballot: Ballot) -> None:
        """All messages are delivered that the decision waits for; it is accepted, unless another
        attempt has begun meanwhile."""
        if self._offered is not None and self._offered[0] == ballot == self.promised:
            if self.accepted != self._offered:
                self._outbox.save(AcceptedDecision(*self._offered))
            self.accepted = self._offered
            self._outbox.send(ballot[1], Accepted(self._me, self._at, ballot))

    def has_accepted(self, decision: Decision) -> bool:
        """Whether this server has, and so has the messages that it waits for. Others may complete
        a decision without that."""
        return self.accepted is not None and self.accepted[1] == decision

    def accepted_servers(self, before: Configuration) -> tuple[int, ...]:
        """Those of the configuration that would follow, by the decision that was accepted."""
        following = self.accepted_configuration(before)
        return () if following is None else tuple(server.number for server in following.servers)

    def accepted_configuration(self, before: Configuration) -> Configuration | None:
        """The configuration that would follow, by the decision that was accepted."""
        return None if self.accepted is None else carried_out(before, self.accepted[1])[0]

    def on_commit(self, message: Commit) -> Decision | None:
        """What was decided, if it is known here."""
        if self.accepted is not None and self.accepted[0] >= message.ballot:
            return self.accepted[1]
        return None
