"""`...@P`: a workload in which a share P of the messages goes to random sets instead.

Source: section 7.2.2 of the DCC dissertation, which injects 1, 2 and 5% of messages to
randomly chosen sets of nodes into the partitioned load. Our choice where it is silent:
a random set is drawn as in `random:N`, the one scenario of the dissertation in which
the number of destinations is itself random, so it often cuts across groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexgroup.core.errors import UsageError
from flexgroup.workloads.random_any import RandomAny
from flexgroup.workloads.workload import Workload

if TYPE_CHECKING:
    from random import Random


class Mixed(Workload):
    def __init__(self, usual: Workload, probability: float) -> None:
        name = f"{usual.name}@{probability}".removesuffix(".0")
        if not 0 <= probability <= 1:
            raise UsageError(
                f"workload {name!r}: {probability:g} is not a probability: "
                f"write a number from 0 to 1, such as {usual.name}@0.02 for 2% random sets"
            )
        super().__init__(name, usual.processes)
        self.payload_bytes = usual.payload_bytes
        self._usual = usual
        self._unusual = RandomAny(usual.processes)
        self._probability = probability

    def next(self, client: int, rng: Random) -> tuple[int, ...]:
        if rng.random() < self._probability:
            return self._unusual.next(client, rng)
        return self._usual.next(client, rng)
