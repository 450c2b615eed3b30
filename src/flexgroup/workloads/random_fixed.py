"""`random:K`: every message goes to K processes, any K of them alike.

Source: the load without locality in section 7.1 of the DCC dissertation, where messages
to 2, 4 and 8 of 16 processes give figures 7.1 (a) to (c).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexgroup.core.errors import UsageError
from flexgroup.workloads.subsets import uniform_subset
from flexgroup.workloads.workload import Workload

if TYPE_CHECKING:
    from random import Random


class RandomFixed(Workload):
    def __init__(self, processes: int, size: int) -> None:
        name = f"random:{size}"
        if not 1 <= size <= processes:
            raise UsageError(
                f"workload {name!r} wants {size} destinations out of {processes} processes: "
                f"write a number from 1 to {processes}, or random:N for any number"
            )
        super().__init__(name, processes)
        self._size = size

    def next(self, client: int, rng: Random) -> tuple[int, ...]:
        return uniform_subset(self.processes, self._size, rng)
