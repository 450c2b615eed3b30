"""Small clusters, written in few words."""

from __future__ import annotations

from flexgroup.membership_explorer.scope import ClusterScope, FaultBounds, PlannedAction
from flexgroup.membership_explorer.search import ClusterResult, ClusterSearch

OVERLAPPING = ((2, 3), (1, 2, 3))
"""Group A on servers 2 and 3, group B on all three."""


def actions(*texts: str) -> tuple[PlannedAction, ...]:
    """Read `cast 1 A,B` and the like."""
    words = [text.split() for text in texts]
    return tuple(
        PlannedAction(kind, int(server), tuple(groups.split(","))) for kind, server, groups in words
    )


def cluster(
    stack: str, groups: tuple[tuple[int, ...], ...], *texts: str, **bounds: int
) -> ClusterScope:
    servers = max(server for group in groups for server in group)
    return ClusterScope(servers, stack, groups, actions(*texts), FaultBounds(**bounds))


def explored(scope: ClusterScope) -> ClusterResult:
    return ClusterSearch(scope).run()
