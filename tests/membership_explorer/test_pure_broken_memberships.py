"""The membership with an idea taken out of its compiled part: some schedule shows it."""

from __future__ import annotations

import pytest

from flexgroup.membership_explorer.scope import ClusterScope

from ..membership.broken_memberships import (
    Break,
    commits_before_all_accepted,
    does_not_wait_for_what_is_under_way,
    forgets_what_was_accepted,
    goes_on_without_the_others,
    lets_any_party_continue,
    takes_any_refusal_for_gone,
)
from .caught import JOIN, check_that_it_is_caught
from .scopes import OVERLAPPING, cluster

JOIN_AND_CRASH = cluster("best-effort", OVERLAPPING, "join 3 A", crashes=1)
CUT = cluster("best-effort", ((1, 2),), "cast 2 A", cuts=1, ticks=10)

VARIANTS = [
    (forgets_what_was_accepted, JOIN_AND_CRASH, "agreement on configurations"),
    (commits_before_all_accepted, JOIN_AND_CRASH, "agreement on configurations"),
    (does_not_wait_for_what_is_under_way, JOIN, "virtual synchrony"),
    (lets_any_party_continue, CUT, "primary partition"),
    (
        takes_any_refusal_for_gone,
        cluster("best-effort", ((1, 2),), "cast 1 A", cuts=1, crashes=1, ticks=10),
        "agreement on configurations",
    ),
    (goes_on_without_the_others, CUT, "primary partition"),
]


@pytest.mark.parametrize(
    ("break_it", "scope", "broken"), VARIANTS, ids=[variant[0].__name__ for variant in VARIANTS]
)
def test_it_is_caught_and_its_script_shows_it(
    break_it: Break, scope: ClusterScope, broken: str
) -> None:
    check_that_it_is_caught(break_it, scope, broken)
