"""How long servers wait for each other follows what links show, and whoever relies on it may."""

from __future__ import annotations

import pytest

from flexgroup.core.errors import UsageError
from flexgroup.membership.operations import CreateGroup, JoinGroup, LeaveGroup
from flexgroup.membership.patience import WINDOW, LinkPatience
from flexgroup.membership.timings import Timings

from .test_suspicion import TIMINGS, beat, hearing
from .virtual_cluster import STACK, Cluster

QUICK = 0.3
"""A confirmation that is this old when the next one comes is nothing unusual."""


def learnt(*waits: float) -> float:
    link = LinkPatience(1.0, 2.0)
    for wait in waits:
        link.waited(wait)
    return link.seconds


# What links show.


def test_at_first_a_server_asks_for_the_longest_patience() -> None:
    assert learnt(*[QUICK] * (WINDOW - 1)) == 2.0


def test_where_confirmations_are_quick_for_long_less_is_enough() -> None:
    assert learnt(*[QUICK] * WINDOW) == 1.0


def test_it_is_twice_as_long_as_the_longest_wait() -> None:
    assert learnt(*[0.7] * WINDOW) == pytest.approx(1.4)


def test_after_a_single_long_wait_more_is_asked_for_at_once() -> None:
    assert learnt(*[QUICK] * 3 * WINDOW, 0.8) == pytest.approx(1.6)


def test_a_long_wait_is_remembered_for_long() -> None:
    assert learnt(*[QUICK] * WINDOW, 0.8, *[QUICK] * WINDOW) == pytest.approx(1.6)
    assert learnt(*[QUICK] * WINDOW, 0.8, *[QUICK] * 2 * WINDOW) == 1.0


def test_it_is_never_longer_than_configured() -> None:
    assert learnt(*[QUICK] * WINDOW, 30.0) == 2.0


@pytest.mark.parametrize(
    ("timings", "shortest"),
    [
        (Timings(), 1.0),  # five beats
        (Timings(patience=10.0), 2.5),
        (Timings(patience=10.0, least=1.5), 1.5),
        (Timings(patience=10.0, least=10.0), 10.0),
        (Timings.of(1.4), 0.7),
        (Timings.of(0.8), 0.5),
        (Timings.of(0.5), 0.5),
    ],
)
def test_how_short_patience_may_become(timings: Timings, shortest: float) -> None:
    assert timings.shortest_patience == shortest


def test_who_has_little_patience_beats_more_often() -> None:
    assert Timings.of(2.0) == Timings.of(2.0, None) == Timings()
    assert Timings.of(10.0, 3.0) == Timings(0.2, 10.0, 3.0)
    assert Timings.of(0.5) == Timings(0.05, 0.5)
    with pytest.raises(UsageError, match=r"0\.2 s is not possible.*give at least 0\.5"):
        Timings.of(0.2)


@pytest.mark.parametrize("least", [0.0, 2.5])
def test_a_least_patience_that_is_none_is_refused(least: float) -> None:
    with pytest.raises(UsageError, match="give a least patience above 0, no longer"):
        Timings(patience=2.0, least=least)


# Leases.


def test_a_server_is_missed_after_as_long_as_it_has_asked_for() -> None:
    h = hearing(1, 2, 3)
    h.heard(1, 2.0)
    h.beaten(beat(1, 2.0, 2.0, patience=1.0), 2.0)
    for tenths in range(1, 31):
        h.passes(tenths / 10)
    assert h.silent(2.95) == (3,)
    assert h.silent(3.0) == (1, 3)


def test_who_asks_for_less_is_still_granted_what_it_was_granted_before() -> None:
    """It relies on that: what it asks for now is about what it says from now on."""
    h = hearing(1, 2, 3)
    h.beaten(beat(1, 0.1, 0.1, patience=1.0), 0.1)
    for tenths in range(1, 20):
        h.passes(tenths / 10)
    assert h.silent(1.9) == ()


def test_a_server_relies_on_a_confirmation_for_as_long_as_that_beat_has_asked_for() -> None:
    h = hearing(1, 2)
    for tenths in range(1, 21):
        h.passes(tenths / 10)
    h.beaten(beat(1, 2.0, 1.9, echoed_patience=1.0), 2.0)
    assert not h.is_isolated(2.6)
    assert h.is_isolated(2.7)


def test_a_confirmation_that_is_late_shortens_nothing() -> None:
    h = hearing(1, 2)
    h.passes(1.0)
    h.beaten(beat(1, 1.0, 1.0), 1.0)
    h.beaten(beat(1, 1.0, 0.9, echoed_patience=0.5), 1.0)
    assert not h.is_isolated(2.4)


def with_group(cluster: Cluster) -> Cluster:
    """Three servers, each with a member."""
    cluster.start(3)
    lives = [host.lives[0] for host in cluster.hosts.values()]
    lives[0].request(CreateGroup("x", STACK, None, True, None))
    cluster.run(0.5)
    for life in lives:
        life.request(JoinGroup("x", life.host.name, 1))
    cluster.run(0.5)
    return cluster


def test_who_was_stopped_in_a_change_and_completes_it_too_late_stands_still_after_it() -> None:
    """The others have agreed on it with this server, and gone on without it since."""
    cluster = with_group(Cluster(1))
    a, b, c = (cluster.hosts[name].lives[0] for name in "abc")
    number = c.installed[-1].number
    b.request(LeaveGroup("x", "b", 1))
    assert cluster.run_until(lambda: c.membership.snapshot().accepted is not None, 1.0)
    cluster.stop(c.host)
    assert cluster.run_until(lambda: a.installed[-1].number > number, 1.0)
    a.cast("x")
    cluster.run(5.0)
    before = list(c.all_delivered())
    cluster.go_on(c.host)
    assert c.installed[-1].number > number
    assert c.all_delivered() == before


# Clusters.


def started(size: int, timings: Timings) -> Cluster:
    """Servers on links that take five milliseconds."""
    cluster = Cluster(1, timings)
    cluster.latency = 0.0045, 0.0055
    cluster.start(size)
    return cluster


def seconds_until_missed(timings: Timings) -> float:
    cluster = started(3, timings)
    cluster.run(60.0)
    cluster.stop(cluster.hosts["c"])
    began = cluster.now
    others = [cluster.hosts[name].life for name in "ab"]
    assert cluster.run_until(
        lambda: all(life is not None and len(life.installed[-1].servers) == 2 for life in others),
        10.0,
    )
    return cluster.now - began


def test_on_quick_links_a_stopped_server_is_found_out_sooner_than_after_patience() -> None:
    assert seconds_until_missed(TIMINGS) < 1.5


def test_with_a_patience_that_is_fixed_it_is_not() -> None:
    assert seconds_until_missed(Timings(least=TIMINGS.patience)) > 1.7


def pause(cluster: Cluster, name: str, seconds: float) -> None:
    cluster.stop(cluster.hosts[name])
    cluster.run(seconds)
    cluster.go_on(cluster.hosts[name])
    cluster.run(3.0)


def number_excluded(cluster: Cluster) -> int:
    return sum(life.excluded is not None for life in cluster.lives)


@pytest.mark.parametrize(
    ("timings", "is_excluded"), [(TIMINGS, False), (Timings(patience=1.0), True)]
)
def test_where_servers_stutter_nobody_is_excluded_for_it(
    timings: Timings, is_excluded: bool
) -> None:
    """For a second every four seconds; to wait no longer than that would not be enough."""
    cluster = started(3, timings)
    for _ in range(15):
        pause(cluster, "c", 1.0)
    assert (number_excluded(cluster) > 0) is is_excluded


@pytest.mark.parametrize(("shorter_one_before", "is_excluded"), [(True, False), (False, True)])
def test_who_has_paused_without_being_missed_is_waited_for_longer_from_then_on(
    shorter_one_before: bool, is_excluded: bool
) -> None:
    cluster = started(3, TIMINGS)
    cluster.run(60.0)
    if shorter_one_before:
        pause(cluster, "c", 0.6)
    pause(cluster, "c", 1.0)
    assert (number_excluded(cluster) > 0) is is_excluded
