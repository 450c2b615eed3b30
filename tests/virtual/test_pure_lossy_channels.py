"""Schedules of replicas notice links that lose what is under way."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from flexgroup.server.peers.replica_channel import ReplicaChannel

from .replicated_schedules import ScheduledReplicas


def test_a_channel_that_sends_nothing_again_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def lossy(self: ReplicaChannel, incarnation: int, data: bytes) -> list[bytes]:
        if not self.is_open:
            return []
        return honest(self, incarnation, data)

    honest = ReplicaChannel.send
    monkeypatch.setattr(ReplicaChannel, "send", lossy)
    with pytest.raises(AssertionError):
        run_all(range(6))


def run_all(seeds: Iterable[int]) -> None:
    for seed in seeds:
        schedule = ScheduledReplicas(seed)
        schedule.run()
        schedule.check()
