"""Workloads whose messages go to random sets of processes."""

from __future__ import annotations

from random import Random

from flexgroup.core.errors import UsageError
from flexgroup.workloads.subsets import uniform_subset
from flexgroup.workloads.workload import Workload


class RandomFixed(Workload):
    """`random:K`: every message goes to K processes, any K of them alike.

    Source: the load without locality in section 7.1 of the DCC dissertation, where messages
    to 2, 4 and 8 of 16 processes give figures 7.1 (a) to (c).
    """

    def __init__(self, processes: int, size: int) -> None:
        name = f"random:{size}"
        if not 1 <= size <= processes:
            raise UsageError(
                f"workload {name!r} wants {size} destinations out of {processes} processes, "
                "or groups of replicas where there are some: "
                f"write a number from 1 to {processes}, or random:N for any number"
            )
        super().__init__(name, processes)
        self._size = size

    def next(self, client: int, rng: Random) -> tuple[int, ...]:
        return uniform_subset(self.processes, self._size, rng)


class RandomAny(Workload):
    """`random:N`: every message goes to a random number of random processes.

    Source: figure 7.1 (d) of the DCC dissertation, where the number of destinations of each
    message is chosen at random up to all 16. Our choice where it is silent: the number is
    uniform from 1 to all, so that messages to few and to many processes are equally
    frequent. Choosing uniformly among all sets instead would make nearly every message go
    to about half of the processes.
    """

    def __init__(self, processes: int) -> None:
        super().__init__("random:N", processes)

    def next(self, client: int, rng: Random) -> tuple[int, ...]:
        size = 1 + int(rng.random() * self.processes)
        return uniform_subset(self.processes, size, rng)


class Mixed(Workload):
    """`...@P`: a workload in which a share P of the messages goes to random sets instead.

    Source: section 7.2.2 of the DCC dissertation, which injects 1, 2 and 5% of messages to
    randomly chosen sets of nodes into the partitioned load. Our choice where it is silent:
    a random set is drawn as in `random:N`, the one scenario of the dissertation in which
    the number of destinations is itself random, so it often cuts across groups.
    """

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
