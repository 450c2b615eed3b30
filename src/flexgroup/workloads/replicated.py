"""Any workload, for groups of replicas: what it says of processes is said of groups."""

from __future__ import annotations

from random import Random

from flexgroup.core.replicas import Replicas
from flexgroup.workloads.workload import Workload


class Replicated(Workload):
    """Messages to groups as a workload draws them, each to all members of those groups.

    With ten groups, `random:2` is any two of the ten, and `tpcc` has one warehouse a group.
    """

    def __init__(self, usual: Workload, replicas: Replicas) -> None:
        super().__init__(usual.name, sum(len(group) for group in replicas))
        self.payload_bytes = usual.payload_bytes
        self._usual = usual
        self._replicas = replicas

    def next(self, client: int, rng: Random) -> tuple[int, ...]:
        groups = self._usual.next(client, rng)
        return tuple([member for group in groups for member in self._replicas[group]])
