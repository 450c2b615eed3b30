"""Whatever happens to a cluster, its servers agree; and they are caught if they do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pytest

from flexgroup.membership import leader, suspicion
from flexgroup.membership.change import Change
from flexgroup.membership.configuration import Configuration
from flexgroup.membership.flush import DomainFlush, DomainReport, merge_reports
from flexgroup.membership.messages import Accepted, Prepared
from flexgroup.membership.operations import CreateGroup, JoinGroup
from flexgroup.membership.suspicion import FailureDetector

from .random_schedules import BOUND, run_schedule
from .virtual_cluster import STACK, Cluster, check_always, is_quiet

SEEDS = 60


def run_schedules(first_seed: int, how_many: int) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in range(first_seed, first_seed + how_many):
        try:
            seen += run_schedule(seed)
        except Exception as error:
            raise AssertionError(f"schedule of seed {seed}: {error}") from error
    return seen


def test_random_schedules() -> None:
    seen = run_schedules(0, SEEDS)
    for what in (
        "survived", "excluded", "died", "came back", "leftovers", "carried out", "refused"
    ):  # fmt: skip
        assert seen[what] > SEEDS / 4, seen


def change_under_way(seed: int) -> Cluster:
    """Three servers with a group; a fourth asks to be let in and messages are on their way."""
    cluster = Cluster(seed)
    cluster.start(3)
    cluster.hosts["a"].lives[0].request(CreateGroup("x", STACK, None, True, None))
    cluster.run(0.5)
    for name in "abc":
        cluster.hosts[name].lives[0].request(JoinGroup("x", name, 1))
    cluster.run(0.5)
    for name in "abc":
        for _ in range(3):
            cluster.hosts[name].lives[0].cast("x")
    cluster.add("d", "b")
    return cluster


def effects_of_the_change() -> int:
    cluster = change_under_way(1)
    before = cluster.effects_done
    assert cluster.run_until(lambda: is_quiet(cluster), BOUND)
    return cluster.effects_done - before


@pytest.mark.parametrize("seed", range(3))
def test_a_crash_at_every_step_of_a_change(seed: int) -> None:
    """Of whoever takes that step: the leader, the contact, the newcomer, the fourth."""
    victims: Counter[str] = Counter()
    for step in range(1, effects_of_the_change() + 20):
        cluster = change_under_way(seed)
        cluster.fault_at = cluster.effects_done + step
        end_after_crash(cluster)
        victims.update(name for name, host in cluster.hosts.items() if host.lives[-1].dead)
    assert set(victims) == set("abcd")


def end_after_crash(cluster: Cluster) -> None:
    hosts = cluster.hosts.values()
    assert cluster.run_until(lambda: any(host.lives[-1].dead for host in hosts), BOUND)
    assert cluster.run_until(lambda: is_quiet(cluster), BOUND)
    check_always(cluster)


# The protocol with one of its ideas taken out.


def forgets_what_was_accepted(patch: pytest.MonkeyPatch) -> None:
    original = Change.on_prepared

    def on_prepared(self: Change, message: Prepared, compose: object) -> None:
        without = Prepared(message.sender, message.at, message.ballot, message.report, None)
        original(self, without, compose)  # type: ignore[arg-type]

    patch.setattr(Change, "on_prepared", on_prepared)


def commits_before_all_accepted(patch: pytest.MonkeyPatch) -> None:
    original = Change.on_accepted

    def on_accepted(self: Change, message: Accepted) -> object:
        if self.attempt is not None:
            self.attempt.accepted.update(self.attempt.party)
        return original(self, message)

    patch.setattr(Change, "on_accepted", on_accepted)


def lets_any_party_continue(patch: pytest.MonkeyPatch) -> None:
    for module in (leader, suspicion):
        patch.setattr(module, "may_continue", lambda party, servers, gone: True)


def takes_any_refusal_for_gone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FailureDetector, "refused", lambda self, server, now: self.gone.add(server))


def leaves_nothing_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leader, "merge_reports", lambda before, reports: [DomainFlush(STACK, [])])


def forgets_what_was_only_sent(patch: pytest.MonkeyPatch) -> None:
    def merge_without(
        before: Configuration, reports: Mapping[int, Sequence[DomainReport]]
    ) -> list[DomainFlush]:
        return merge_reports(
            before,
            {
                server: [
                    DomainReport(told.stack, told.delivered, told.low) for told in reports[server]
                ]
                for server in reports
            },
        )

    patch.setattr(leader, "merge_reports", merge_without)


def never_repeats(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Change, "repeat", lambda self, now: None)


def goes_on_without_the_others(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Change, "suspend", lambda self: None)


def does_not_freeze_when_it_stands_still(patch: pytest.MonkeyPatch) -> None:
    original = Change.suspend

    def suspend(self: Change) -> None:
        asked = self._outbox.take()
        original(self)
        self._outbox.take()
        for effect in asked:
            self._outbox.ask(effect)

    patch.setattr(Change, "suspend", suspend)


@pytest.mark.parametrize(
    ("break_it", "first_seed"),
    [
        (forgets_what_was_accepted, 295),
        (commits_before_all_accepted, 38),
        (lets_any_party_continue, 0),
        (takes_any_refusal_for_gone, 83),
        (leaves_nothing_over, 0),
        (forgets_what_was_only_sent, 0),
        (never_repeats, 11),
        (goes_on_without_the_others, 0),
        (does_not_freeze_when_it_stands_still, 0),
    ],
)
def test_broken_variants_are_caught(
    break_it: Callable[[pytest.MonkeyPatch], None],
    first_seed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first seed saves time only: others find them, too."""
    break_it(monkeypatch)
    with pytest.raises(AssertionError):
        run_schedules(first_seed, 500)
