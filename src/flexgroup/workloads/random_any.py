"""`random:N`: every message goes to a random number of random processes.

Source: figure 7.1 (d) of the DCC dissertation, where the number of destinations of each
message is chosen at random up to all 16. Our choice where it is silent: the number is
uniform from 1 to all, so that messages to few and to many processes are equally
frequent. Choosing uniformly among all sets instead would make nearly every message go
to about half of the processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexgroup.workloads.subsets import uniform_subset
from flexgroup.workloads.workload import Workload

if TYPE_CHECKING:
    from random import Random


class RandomAny(Workload):
    def __init__(self, processes: int) -> None:
        super().__init__("random:N", processes)

    def next(self, client: int, rng: Random) -> tuple[int, ...]:
        size = 1 + int(rng.random() * self.processes)
        return uniform_subset(self.processes, size, rng)
