"""Which servers have replicas of which groups, as applications say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flexgroup.core.errors import UsageError
from flexgroup.wire.names import name_of


def named_replicas(groups: Mapping[str, Sequence[str]]) -> list[tuple[str, list[str]]]:
    """Return the names of groups and of their servers, provided that servers understand them."""
    if not isinstance(groups, Mapping) or not groups:
        raise UsageError(
            f"groups={groups!r:.50}; give the names of the servers of each group, as in "
            '{"a": ("s0", "s1", "s2")}'
        )
    named: list[tuple[str, list[str]]] = []
    for group, servers in groups.items():
        if isinstance(servers, str):
            raise UsageError(f"{group!r} has {servers!r}, one text; give a list of servers")
        names = [name_of("the name of a server", server) for server in servers]
        named.append((name_of("the name of a group", group), names))
    return named
