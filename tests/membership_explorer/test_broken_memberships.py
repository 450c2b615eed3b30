"""The membership with one of its ideas taken out: some schedule of a small scope shows it."""

from __future__ import annotations

import pytest

from flexgroup.membership.effects import Install
from flexgroup.membership_explorer.scope import ClusterScope
from flexgroup.membership_explorer.server import ExploredServer, Marked
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.server.hosting.deployment import NOTHING

from ..membership.broken_memberships import (
    Break,
    does_not_heed_what_senders_knew,
    leaves_nothing_over,
    puts_what_nobody_delivered_last,
)
from .caught import JOIN, check_that_it_is_caught
from .scopes import cluster


def takes_packets_ahead_of_their_configuration(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ExploredServer, "is_ahead", lambda self, frame, hosted: False)


def tells_of_views_at_once(patch: pytest.MonkeyPatch) -> None:
    original = ExploredServer._install

    def install(self: ExploredServer, effect: Install) -> None:
        original(self, effect)
        if self.deployment.take_unmarked(NOTHING):
            self.log.append(Marked(self._eras()))

    patch.setattr(ExploredServer, "_install", install)


def lets_views_flow_in_any_total_order(patch: pytest.MonkeyPatch) -> None:
    """A server that fails may have told its members of a view at another place."""
    patch.setattr(StackPlan, "gives_one_sequence", lambda *_: True)


VARIANTS = [
    (
        tells_of_views_at_once,
        cluster("skeen safe", ((1, 2),), "cast 1 A", "cast 2 A", "join 1 A"),
        "virtual synchrony",
    ),
    (
        lets_views_flow_in_any_total_order,
        cluster("skeen", ((1, 2, 3),), "cast 2 A", "join 3 A", crashes=1),
        "virtual synchrony",
    ),
    (
        puts_what_nobody_delivered_last,
        cluster("fifo", ((2,), (2, 3)), "cast 1 A", "cast 1 B", breaks=1),
        "fifo order",
    ),
    (
        does_not_heed_what_senders_knew,
        cluster("causal-rst", ((1, 3), (1, 2, 3)), "cast 2 A", "cast 3 B", crashes=1),
        "causal order",
    ),
    (takes_packets_ahead_of_their_configuration, JOIN, "virtual synchrony"),
    (
        leaves_nothing_over,
        cluster("best-effort", ((1, 2, 3),), "cast 1 A", crashes=1),
        "virtual synchrony",
    ),
]


@pytest.mark.parametrize(
    ("break_it", "scope", "broken"), VARIANTS, ids=[variant[0].__name__ for variant in VARIANTS]
)
def test_it_is_caught_and_its_script_shows_it(
    break_it: Break, scope: ClusterScope, broken: str
) -> None:
    check_that_it_is_caught(break_it, scope, broken)
