"""Servers whose replicas save their state often: after a restart, they go on from there."""

from __future__ import annotations

import pytest

from flexgroup.protocols import ft_abcast, paxos, replicated

from ..network.replica_clients import Numbered
from .replicated_cluster import replicated as replicated_servers

TWO_GROUPS = {"a": ("s0", "s1", "s2"), "b": ("s3", "s4", "s5")}

BODIES = [b"%d" % number for number in range(12)]


@pytest.mark.parametrize("name", ["SKEEN-CFT", "DF-CFT", "DCC-CFT", "FT-ABCAST"])
def test_all_servers_come_back_from_states_that_they_saved(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicated, "CHECKPOINT", 5)
    monkeypatch.setattr(ft_abcast, "CHECKPOINT", 5)
    monkeypatch.setattr(paxos, "CUT", 2)
    with replicated_servers(6) as cluster:
        cluster.create(f"LEADER PAXOS {name}", TWO_GROUPS)
        cluster.send(0, ["a", "b"], BODIES)
        cluster.send(4, ["b", "a"], BODIES)
        assert all(cluster.replica(p).domain.host.stored[1].first > 10 for p in range(6))
        cluster.kill(*range(6))
        cluster.restart(*range(6))
        cluster.wait_for_servers(*range(6))
        seen: list[Numbered] = [[] for _ in range(6)]
        for server in range(6):
            cluster.listen(server, "a" if server < 3 else "b", seen[server])
        cluster.pass_time(0.5)
        cluster.send(2, ["a", "b"], BODIES)
        cluster.send(3, ["b", "a"], BODIES)
        cluster.pass_time(0.5)
        assert seen[0] == list(enumerate(BODIES * 2, 25))
        assert all(order == seen[0] for order in seen)
