"""The membership with one of its ideas taken out: random schedules show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from flexgroup.membership import side_view
from flexgroup.membership.configuration import FIRST_OF_SIDES
from flexgroup.membership.effects import Freeze
from flexgroup.membership.flush import DomainFlush, Report
from flexgroup.membership.next_configuration import NextConfiguration
from flexgroup.membership.operations import Merge
from flexgroup.membership.outbox import Outbox
from flexgroup.membership.side_view import Part
from flexgroup.membership.stable import AcceptedDecision, AnyRecord
from flexgroup.membership.suspicion import FailureDetector
from flexgroup.server.hosting.deployment import Deployment

from .broken_memberships import (
    Break,
    commits_before_all_accepted,
    does_not_freeze_when_it_stands_still,
    does_not_wait_for_what_is_under_way,
    forgets_what_was_accepted,
    forgets_what_was_only_sent,
    goes_on_without_the_others,
    leaves_nothing_over,
    lets_any_party_continue,
    never_repeats,
    takes_any_refusal_for_gone,
)
from .test_membership_schedules import run_schedules
from .test_sides import run_schedules as run_parting_schedules


@pytest.mark.parametrize(
    ("break_it", "first_seed"),
    [
        (forgets_what_was_accepted, 295),
        (commits_before_all_accepted, 38),
        (lets_any_party_continue, 0),
        (takes_any_refusal_for_gone, 83),
        (leaves_nothing_over, 0),
        (forgets_what_was_only_sent, 0),
        (does_not_wait_for_what_is_under_way, 0),
        (never_repeats, 11),
        (goes_on_without_the_others, 0),
        (does_not_freeze_when_it_stands_still, 0),
    ],
)
def test_broken_variants_are_caught(
    break_it: Break,
    first_seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first seed saves time only: others find them, too."""
    break_it(monkeypatch)
    with pytest.raises(AssertionError):
        run_schedules(first_seed, 500)


# Servers that keep data.


def does_not_save_what_it_accepts(patch: pytest.MonkeyPatch) -> None:
    original = Outbox.save

    def save(self: Outbox, record: AnyRecord) -> None:
        if not isinstance(record, AcceptedDecision):
            original(self, record)

    patch.setattr(Outbox, "save", save)


def keeps_processes_that_are_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NextConfiguration, "lose_processes", lambda self, servers: None)


def goes_on_without_those_that_may_come_back(patch: pytest.MonkeyPatch) -> None:
    def refused(self: FailureDetector, server: int, now: float) -> None:
        if server in self._heard_at:
            self.gone.add(server)

    patch.setattr(FailureDetector, "refused", refused)


@pytest.mark.parametrize(
    "break_it",
    [
        does_not_save_what_it_accepts,
        keeps_processes_that_are_lost,
        goes_on_without_those_that_may_come_back,
    ],
)
def test_broken_variants_with_data_are_caught(
    break_it: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    with pytest.raises(AssertionError):
        run_schedules(0, 100, keeps_data=True)


# Partitionable groups.


def delivers_nothing_that_is_left(patch: pytest.MonkeyPatch) -> None:
    def nothing(parts: Iterable[Part]) -> list[DomainFlush]:
        return []

    patch.setattr(side_view, "flushes", nothing)


def delivers_on_while_a_view_is_formed(patch: pytest.MonkeyPatch) -> None:
    freeze = Deployment.freeze

    def freeze_nothing_more(self: Deployment, effect: Freeze) -> Report:
        report = freeze(self, effect)
        for hosted in self.domains if effect.is_of_side else ():
            hosted.is_frozen = hosted.entry.number < FIRST_OF_SIDES
        return report

    patch.setattr(Deployment, "freeze", freeze_nothing_more)


def brings_nothing_back(patch: pytest.MonkeyPatch) -> None:
    def merge(self: NextConfiguration, origin: int, operation: Merge) -> None:
        pass

    patch.setattr(NextConfiguration, "_merge", merge)


@pytest.mark.parametrize(
    ("broken", "seed"),
    [
        (delivers_nothing_that_is_left, 18),
        (delivers_on_while_a_view_is_formed, 2464),
        (brings_nothing_back, 0),
    ],
)
def test_broken_sides_are_caught(
    broken: Callable[[pytest.MonkeyPatch], None], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a seed at which nothing is wrong without them: otherwise it would tell nothing of them."""
    run_parting_schedules([seed])
    broken(monkeypatch)
    with pytest.raises(AssertionError, match=f"seed {seed}"):
        run_parting_schedules([seed])
