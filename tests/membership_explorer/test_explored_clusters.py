"""Every schedule of two and three servers: configurations are agreed on, views are virtually
synchronous, orders hold, nothing that a survivor sent is lost, and all become quiet."""

from __future__ import annotations

import pytest

from flexgroup.membership_explorer.scope import ClusterScope

from .scopes import OVERLAPPING, cluster, explored

BOTH = ((1, 2),)

SCOPES = {
    "a client joins": cluster("best-effort", OVERLAPPING, "cast 2 A", "join 1 A"),
    "a client leaves": cluster("best-effort", OVERLAPPING, "cast 2 A", "leave 3 A"),
    "two join at once": cluster("best-effort", BOTH, "cast 1 A", "join 1 A", "join 2 A"),
    "a client joins, with a total order": cluster(
        "skeen", OVERLAPPING, "cast 2 A", "cast 2 A,B", "join 1 A"
    ),
    "members come and go while messages go on": cluster(
        "skeen safe", BOTH, "cast 1 A", "cast 2 A", "join 1 A", "leave 2 A"
    ),
    "a server crashes while views flow": cluster(
        "abcast safe", BOTH, "cast 2 A", "join 2 A", crashes=1
    ),
    "a server crashes during a change": cluster(
        "best-effort", OVERLAPPING, "cast 1 A", "join 3 A", crashes=1
    ),
    "a server crashes, with a total order": cluster(
        "fifo dcc", OVERLAPPING, "cast 2 A", "cast 1 A,B", crashes=1
    ),
    "a server crashes, with causal order": cluster(
        "causal-rst", ((1, 3), (1, 2, 3)), "cast 2 A", "cast 3 B", crashes=1
    ),
    "a server crashes and comes back": cluster(
        "best-effort", BOTH, "cast 2 A", crashes=1, restarts=1
    ),
    "a link breaks": cluster("fifo", ((2,), (2, 3)), "cast 1 A", "cast 1 B", breaks=1),
    "a link breaks during a change": cluster(
        "best-effort", BOTH, "cast 1 A", "cast 2 A", "join 2 A", breaks=1
    ),
    "a link falls silent": cluster("best-effort", BOTH, "cast 2 A", cuts=1, ticks=10),
}

LARGER = {
    "one of three crashes while views flow": cluster(
        "abcast safe", ((1, 2, 3),), "join 3 A", crashes=1
    ),
    "a link breaks while views flow": cluster(
        "skeen safe", BOTH, "cast 1 A", "cast 2 A", "join 2 A", breaks=1
    ),
    "one link of three falls silent": cluster(
        "best-effort", OVERLAPPING, "cast 2 A,B", cuts=1, ticks=9
    ),
    "a crash during a change, with a total order": cluster(
        "reliable atomic", ((1, 2), (1, 2, 3)), "cast 2 A", "join 3 A", crashes=1
    ),
    "a crash, and something late": cluster(
        "best-effort", OVERLAPPING, "cast 2 A", "join 1 A", crashes=1, delays=1
    ),
    "a crash at any place of a change, and coming back": cluster(
        "best-effort", OVERLAPPING, "join 1 A", crashes=1, restarts=1
    ),
    "both of two crash and come back": cluster("best-effort", BOTH, crashes=2, restarts=2),
    "an answer does not come, and the leader goes on alone and dies": cluster(
        "best-effort", BOTH, "join 1 A", cuts=1, crashes=1, delays=1, ticks=10
    ),
}


@pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES)
def test_no_schedule_breaks_anything(scope: ClusterScope) -> None:
    result = explored(scope)
    assert result.exhausted
    assert result.violations == ()
    assert result.ends > 0


@pytest.mark.slow
@pytest.mark.parametrize("scope", LARGER.values(), ids=LARGER)
def test_no_schedule_of_a_larger_scope_breaks_anything(scope: ClusterScope) -> None:
    test_no_schedule_breaks_anything(scope)


def test_servers_that_are_too_few_to_go_on_are_not_waited_for() -> None:
    """The older of two is cut off and dies; whether it had gone on alone nobody knows."""
    result = explored(cluster("best-effort", BOTH, cuts=1, crashes=1, ticks=10))
    assert result.violations == ()
    assert result.lost > 0
