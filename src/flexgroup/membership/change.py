"""The step from one configuration to the next, agreed on by the servers of the old one.

A leader's attempt has three rounds: Prepare (freeze, and report what was delivered), Accept
(here is the next configuration with what is left to deliver), Commit (all have it). An attempt
needs *every* server of its party, and parties that may go on have a common member; so a later
attempt, which asks first what was accepted, finds whatever an earlier one may have committed,
and completes it. This is the synod of Paxos with parties in the place of majorities.
"""

from __future__ import annotations

from collections.abc import Callable

from flexgroup.membership.effects import Freeze, Outbox
from flexgroup.membership.flush import DomainReport
from flexgroup.membership.messages import (
    NO_BALLOT,
    Accept,
    Accepted,
    Ballot,
    Commit,
    ControlMessage,
    Decision,
    Overtaken,
    Prepare,
    Prepared,
)


class Attempt:
    """One attempt of a leader to make a change."""

    __slots__ = (
        "accepted",
        "ballot",
        "decision",
        "overtaken",
        "party",
        "prepared",
        "sent",
        "since",
    )

    def __init__(self, ballot: Ballot, party: tuple[int, ...], now: float) -> None:
        self.ballot = ballot
        self.party = party
        self.since = now
        self.sent = now
        self.prepared: dict[int, Prepared] = {}
        self.decision: Decision | None = None
        self.accepted: set[int] = set()
        self.overtaken: float | None = None
        """When a higher ballot became known, if one did."""

    def missing(self) -> tuple[int, ...]:
        """The servers whose answer the current round waits for."""
        answered = self.prepared if self.decision is None else self.accepted
        return tuple(server for server in self.party if server not in answered)


class Change:
    """The change that follows configuration `at`, as one of its servers sees it."""

    __slots__ = (
        "_accepted",
        "_at",
        "_me",
        "_outbox",
        "_round",
        "attempt",
        "promised",
        "report",
    )

    def __init__(self, me: int, at: int, outbox: Outbox) -> None:
        self._me = me
        self._at = at
        self._outbox = outbox
        self._round = 0
        self.promised: Ballot = NO_BALLOT
        self.report: list[DomainReport] | None = None
        self._accepted: tuple[Ballot, Decision] | None = None
        self.attempt: Attempt | None = None

    @property
    def is_under_way(self) -> bool:
        """Somebody has begun a change, as far as is known here."""
        return self._round > 0

    def suspend(self) -> None:
        """Stand still, since others may have gone on: only a change leads out of that.

        A ballot that nobody leads is promised, which the others are told with every beat; so
        whoever leads when enough servers hear each other again begins a change.
        """
        if self.promised == NO_BALLOT:
            self._round += 1
            self.promised = (self._round, self._me)
            self._outbox.ask(Freeze(self._at + 1))

    # Leading

    def begin(self, party: tuple[int, ...], now: float) -> None:
        self._round += 1
        self.attempt = Attempt((self._round, self._me), party, now)
        self._ask(self.attempt)

    def repeat(self, now: float) -> None:
        """What has not been answered may have been lost."""
        if self.attempt is not None:
            self.attempt.sent = now
            self._ask(self.attempt)

    def _ask(self, attempt: Attempt) -> None:
        message: ControlMessage
        if attempt.decision is None:
            message = Prepare(self._me, self._at, attempt.ballot)
        else:
            message = Accept(self._me, self._at, attempt.ballot, attempt.decision)
        for server in attempt.missing():
            self._outbox.send(server, message)

    def saw(self, ballot: Ballot, now: float) -> None:
        """Somebody follows this ballot."""
        self._round = max(self._round, ballot[0])
        attempt = self.attempt
        if attempt is not None and ballot > attempt.ballot and attempt.overtaken is None:
            attempt.overtaken = now

    def on_prepared(
        self, message: Prepared, compose: Callable[[dict[int, list[DomainReport]]], Decision]
    ) -> None:
        attempt = self.attempt
        if attempt is None or message.ballot != attempt.ballot or attempt.decision is not None:
            return
        attempt.prepared[message.sender] = message
        if attempt.missing():
            return
        accepted = [a.accepted for a in attempt.prepared.values() if a.accepted is not None]
        if accepted:
            attempt.decision = max(accepted, key=lambda pair: pair[0])[1]
        else:
            attempt.decision = compose(
                {server: answer.report for server, answer in attempt.prepared.items()}
            )
        self._ask(attempt)

    def on_accepted(self, message: Accepted) -> Decision | None:
        """What is decided, now that all of the party have accepted it."""
        attempt = self.attempt
        if attempt is None or message.ballot != attempt.ballot or attempt.decision is None:
            return None
        attempt.accepted.add(message.sender)
        if attempt.missing():
            return None
        for server in attempt.party:
            if server != self._me:
                self._outbox.send(server, Commit(self._me, self._at, attempt.ballot))
        return attempt.decision

    # Following

    def on_prepare(self, message: Prepare) -> None:
        if message.ballot < self.promised:
            self._outbox.send(message.sender, Overtaken(self._me, self._at, self.promised))
            return
        begins = self.promised == NO_BALLOT
        self.promised = message.ballot
        if begins:
            self._outbox.ask(Freeze(self._at + 1))
        elif self.report is not None:
            self._answer(self.report)

    def frozen(self, report: list[DomainReport]) -> None:
        """The domains stand still, and stay so until the next configuration."""
        if self.promised != NO_BALLOT and self.report is None:
            self.report = report
            self._answer(report)

    def _answer(self, report: list[DomainReport]) -> None:
        leader = self.promised[1]
        self._outbox.send(
            leader, Prepared(self._me, self._at, self.promised, report, self._accepted)
        )

    def on_accept(self, message: Accept) -> bool:
        if message.ballot < self.promised:
            self._outbox.send(message.sender, Overtaken(self._me, self._at, self.promised))
            return False
        self.promised = message.ballot
        self._accepted = (message.ballot, message.decision)
        self._outbox.send(message.sender, Accepted(self._me, self._at, message.ballot))
        return True

    def on_commit(self, message: Commit) -> Decision | None:
        """What was decided, if it is known here."""
        if self._accepted is not None and self._accepted[0] >= message.ballot:
            return self._accepted[1]
        return None
