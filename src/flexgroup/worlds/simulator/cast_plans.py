"""Multicasts by members at planned times, as people write them.

`0@0s` lets process 0 multicast at the start, `all@10ms` every process at 10 ms; several are
separated by spaces. Where a message goes, the workload says.
"""

from __future__ import annotations

from flexgroup.core.errors import UsageError
from flexgroup.worlds.simulator.networks import parse_time

EVERYBODY = "all"
MOST_CASTS = 1 << 20


def parse_casts(text: str, processes: int) -> list[tuple[int, int]]:
    """The planned multicasts as (time, process); those of one process in the order written."""
    planned = [_planned(word, processes) for word in text.split()]
    count = sum(len(members) for _, members in planned)
    if count > MOST_CASTS:
        raise UsageError(f"{count} planned multicasts are too many; plan up to {MOST_CASTS}")
    casts = [(moment, member) for moment, members in planned for member in members]
    return sorted(casts, key=lambda cast: cast[0])


def _planned(word: str, processes: int) -> tuple[int, range]:
    """The time at which processes multicast, and which processes these are."""
    who, at, time = word.partition("@")
    if not at:
        raise UsageError(f"--cast '{word}': write PROCESS@TIME or all@TIME, for example 0@5ms")
    if who == EVERYBODY:
        return parse_time(time), range(processes)
    if not who.isdecimal() or int(who) >= processes:
        raise UsageError(
            f"--cast '{word}': '{who}' is not a process; they are 0 to {processes - 1}, or all"
        )
    return parse_time(time), range(int(who), int(who) + 1)
