"""Uniformly random sets of processes, fast enough for every message of a simulation."""

from __future__ import annotations

from random import Random


def uniform_subset(processes: int, size: int, rng: Random) -> tuple[int, ...]:
    """A set of `size` processes, ascending; each set of that size is equally likely.

    R. W. Floyd's method (J. Bentley, "Programming Pearls: A Sample of Brilliance",
    Communications of the ACM 30(9), 1987) needs one random number for each member,
    whereas drawing until the values differ needs many when the set is almost everyone.
    """
    random = rng.random
    chosen: set[int] = set()
    for last in range(processes - size, processes):
        candidate = int(random() * (last + 1))
        chosen.add(last if candidate in chosen else candidate)
    return tuple(sorted(chosen))
