"""Whatever patience servers ask for, from beat to beat, and whatever happens: whoever relies on it
may, and a server that breaks a promise is caught."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

import pytest
from msgspec.structs import replace

from flexgroup.membership import patience
from flexgroup.membership.messages import Beat
from flexgroup.membership.patience import LinkPatience
from flexgroup.membership.suspicion import FailureDetector

from .random_schedules import BOUND
from .test_membership_schedules import run_schedules
from .test_patience import with_group
from .virtual_cluster import Cluster, check_always, is_quiet


def learns_quickly(patch: pytest.MonkeyPatch) -> None:
    """Patience follows each beat or two."""
    patch.setattr(patience, "WINDOW", 2)


def asks_for_anything(patch: pytest.MonkeyPatch) -> None:
    """Every beat asks for another patience."""
    random = Random(1)
    drawn = property(lambda self: random.choice((0.9, 1.2, 2.0)))
    patch.setattr(LinkPatience, "seconds", drawn)


def cut_off_while_all_send(seeds: Iterable[int]) -> None:
    """One or two of three servers, for a while, in which somebody sends all the time."""
    for seed in seeds:
        _cut_off_while_all_send(with_group(Cluster(seed)))


def _cut_off_while_all_send(cluster: Cluster) -> None:
    lives = [host.lives[0] for host in cluster.hosts.values()]
    cluster.run(cluster.random.uniform(0.5, 2.5))
    cluster.part(set(cluster.random.sample("abc", cluster.random.choice((1, 2)))))
    for _ in range(60):
        for life in lives:
            life.cast("x")
        cluster.run(0.05)
    cluster.heal()
    assert cluster.run_until(lambda: is_quiet(cluster), BOUND)
    check_always(cluster)


@pytest.mark.parametrize("adapt", [learns_quickly, asks_for_anything])
def test_nobody_delivers_anything_when_others_may_have_gone_on(
    adapt: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A delivery, and a beat that says who is missed, fail if a promise is broken."""
    adapt(monkeypatch)
    cut_off_while_all_send(range(40))
    seen = run_schedules(1000, 60)
    assert seen["excluded"] > 15


@pytest.mark.parametrize("adapt", [learns_quickly, asks_for_anything])
def test_so_it_is_among_servers_that_keep_their_data(
    adapt: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    adapt(monkeypatch)
    seen = run_schedules(1000, 60, keeps_data=True)
    assert seen["excluded"] > 15


@pytest.mark.large
@pytest.mark.parametrize("adapt", [learns_quickly, asks_for_anything])
@pytest.mark.parametrize("keeps_data", [False, True])
def test_so_it_is_in_a_thousand_schedules(
    adapt: Callable[[pytest.MonkeyPatch], None], keeps_data: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`FLEXGROUP_PURE=1 python -m pytest -m large tests/membership` runs them."""
    adapt(monkeypatch)
    run_schedules(1000, 250, keeps_data)


def relies_on_more_as_soon_as_it_asks_for_it(patch: pytest.MonkeyPatch) -> None:
    original = FailureDetector._rely_on

    def rely_on(self: FailureDetector, beat: Beat, now: float) -> None:
        asked = self.patience_asked_of(beat.sender)
        original(self, replace(beat, echoed_patience=asked), now)

    patch.setattr(FailureDetector, "_rely_on", rely_on)


def forgets_what_it_has_granted(patch: pytest.MonkeyPatch) -> None:
    original = FailureDetector.beaten

    def beaten(self: FailureDetector, beat: Beat, now: float) -> None:
        self._granted[beat.sender] = 0.0
        original(self, beat, now)

    patch.setattr(FailureDetector, "beaten", beaten)


@pytest.mark.parametrize(
    "break_it", [relies_on_more_as_soon_as_it_asks_for_it, forgets_what_it_has_granted]
)
def test_a_server_that_breaks_a_promise_is_caught(
    break_it: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    asks_for_anything(monkeypatch)
    break_it(monkeypatch)
    with pytest.raises(AssertionError, match=r"may have gone on|relies on it"):
        cut_off_while_all_send(range(40))
