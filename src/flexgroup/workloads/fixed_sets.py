"""Workloads whose messages go to sets of processes that are fixed: all, or one of some groups."""

from __future__ import annotations

from random import Random

from flexgroup.core.errors import UsageError
from flexgroup.workloads.workload import Workload


class Broadcast(Workload):
    """`broadcast`: every message goes to every process, as in atomic broadcast."""

    def __init__(self, processes: int) -> None:
        super().__init__("broadcast", processes)
        self._everyone = tuple(range(processes))

    def next(self, client: int, rng: Random) -> tuple[int, ...]:
        return self._everyone


CONSECUTIVE = "partitioned"
ALTERNATING = "alternating"
"""How the groups of a `Partitioned` workload lie in the order of the processes."""


class Partitioned(Workload):
    """`partitioned:GxC`: C fixed groups of G processes each; a message goes to one whole group.

    Source: section 7.2.2 of the DCC dissertation, with 16 processes as 2x8 (eight groups of
    two), 4x4 and 8x2. Our choices where it is silent: the groups are disjoint, and a client
    picks a group anew for every message, each alike. Nor does it say how they lie in the order of
    the processes, which decides what DCC passes through: `partitioned` makes them of consecutive
    processes, `alternating` of every C-th one.
    """

    def __init__(
        self, processes: int, group_size: int, groups: int, layout: str = CONSECUTIVE
    ) -> None:
        name = f"{layout}:{group_size}x{groups}"
        if group_size * groups != processes:
            raise UsageError(
                f"workload {name!r} is for {group_size} x {groups} = {group_size * groups} "
                f"processes, not {processes}: write {layout}:{_even_split(processes)}, "
                f"or any nodes-per-group x groups that gives {processes}"
            )
        super().__init__(name, processes)
        self._groups = tuple(
            tuple(range(number, processes, groups))
            if layout == ALTERNATING
            else tuple(range(number * group_size, (number + 1) * group_size))
            for number in range(groups)
        )

    def next(self, client: int, rng: Random) -> tuple[int, ...]:
        groups = self._groups
        return groups[int(rng.random() * len(groups))]


def _even_split(processes: int) -> str:
    """The split into groups that is closest to a square, such as 4x4 for 16."""
    groups = max(g for g in range(1, processes + 1) if g * g <= processes and processes % g == 0)
    return f"{processes // groups}x{groups}"
