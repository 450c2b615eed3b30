"""`broadcast`: every message goes to every process, as in atomic broadcast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexgroup.workloads.workload import Workload

if TYPE_CHECKING:
    from random import Random


class Broadcast(Workload):
    def __init__(self, processes: int) -> None:
        super().__init__("broadcast", processes)
        self._everyone = tuple(range(processes))

    def next(self, client: int, rng: Random) -> tuple[int, ...]:
        return self._everyone
