"""Servers of which some schedule of a small scope shows that they are broken."""

from __future__ import annotations

import pytest

from flexgroup.membership_explorer.scope import ClusterScope
from flexgroup.membership_explorer.script import parse_script, verdict, write_script

from ..membership.broken_memberships import Break
from .scopes import OVERLAPPING, cluster, explored

JOIN = cluster("best-effort", OVERLAPPING, "cast 2 A", "join 1 A")


def check_that_it_is_caught(break_it: Break, scope: ClusterScope, broken: str) -> None:
    """And that the script of the schedule shows it again."""
    with pytest.MonkeyPatch.context() as patch:
        break_it(patch)
        (violation,) = explored(scope).violations
        assert violation.name == broken
        again, run = parse_script(write_script(scope, violation.run))
        assert broken in verdict(again, run)
