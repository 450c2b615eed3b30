"""The membership with one of its ideas taken out, for whoever has to notice it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import pytest

from flexgroup.membership import leader, suspicion
from flexgroup.membership.change import Attempt, Change
from flexgroup.membership.configuration import Configuration
from flexgroup.membership.flush import (
    DomainFlush,
    DomainReport,
    Precedence,
    Report,
    Unstable,
    merge_reports,
)
from flexgroup.membership.messages import Accept, Accepted
from flexgroup.membership.suspicion import FailureDetector

Break = Callable[[pytest.MonkeyPatch], None]


def puts_what_nobody_delivered_last(patch: pytest.MonkeyPatch) -> None:
    """As the flush once was: a server outside of its destinations may have delivered something
    that was sent later."""

    def in_order_of_reports(precedence: Precedence) -> list[Unstable]:
        return [message for message in precedence.messages if message is not None]

    patch.setattr(Precedence, "linear_extension", in_order_of_reports)


def does_not_heed_what_senders_knew(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Precedence, "_keep_what_senders_knew", lambda *_: None)


def forgets_what_was_accepted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Attempt, "accepted_before", lambda self: None)


def commits_before_all_accepted(patch: pytest.MonkeyPatch) -> None:
    original = Change.on_accepted

    def on_accepted(self: Change, message: Accepted) -> object:
        if self.attempt is not None:
            self.attempt.accepted.update(self.attempt.party)
        return original(self, message)

    patch.setattr(Change, "on_accepted", on_accepted)


def lets_any_party_continue(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(suspicion, "may_continue", lambda party, servers, gone: True)


def takes_any_refusal_for_gone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FailureDetector, "refused", lambda self, server, now: self.gone.add(server))


def leaves_nothing_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leader, "merge_reports", lambda before, reports, frozen: [])


def forgets_what_was_only_sent(patch: pytest.MonkeyPatch) -> None:
    def merge_without(
        before: Configuration, reports: Mapping[int, Report], frozen: Collection[int]
    ) -> list[DomainFlush]:
        without = {
            server: Report(
                [DomainReport(told.domain, told.delivered, told.low) for told in report.domains]
            )
            for server, report in reports.items()
        }
        return merge_reports(before, without, frozen)

    patch.setattr(leader, "merge_reports", merge_without)


def does_not_wait_for_what_is_under_way(patch: pytest.MonkeyPatch) -> None:
    original = Change.on_accept

    def on_accept(self: Change, message: Accept) -> bool:
        is_followed = original(self, message)
        self.drained(message.ballot)
        return is_followed

    patch.setattr(Change, "on_accept", on_accept)


def never_repeats(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Change, "repeat", lambda self, now: None)


def goes_on_without_the_others(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Change, "suspend", lambda self, domains: None)


def does_not_freeze_when_it_stands_still(patch: pytest.MonkeyPatch) -> None:
    original = Change.suspend

    def suspend(self: Change, domains: tuple[int, ...]) -> None:
        asked = self._outbox.take()
        original(self, domains)
        self._outbox.take()
        for effect in asked:
            self._outbox.ask(effect)

    patch.setattr(Change, "suspend", suspend)
