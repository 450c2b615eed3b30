"""What goes wrong in a simulation, and when: a plan, fixed before the run starts."""

from __future__ import annotations

from typing import final

from flexgroup.core.host import NEVER


@final
class Partition:
    """Packets between different sides do not get through from `start` to `end`.

    They are held and arrive after the partition has healed or, if `drop` is set, lost.
    A process or client that no side names reaches all sides, and all reach it.
    """

    __slots__ = ("drop", "end", "side", "start")

    def __init__(self, side: dict[int, int], start: int, end: int, drop: bool) -> None:
        self.side = side
        self.start = start
        self.end = end
        self.drop = drop

    def separates(self, source: int, target: int, time: int) -> bool:
        if not self.start <= time < self.end:
            return False
        if source not in self.side or target not in self.side:
            return False
        return self.side[source] != self.side[target]


@final
class FaultPlan:
    """Crashes and recoveries as (time, process), in order of time; the rest as it says."""

    __slots__ = ("crashes", "detection", "partitions", "recoveries", "suspicions", "views")

    def __init__(self) -> None:
        self.crashes: list[tuple[int, int]] = []
        self.recoveries: list[tuple[int, int]] = []
        self.partitions: list[Partition] = []
        self.suspicions: list[tuple[int, int, int, int]] = []
        """The false suspicions, as (start, end, who suspects, whom)."""
        self.views: list[tuple[int, tuple[int, ...]]] = []
        """When all processes are told of view 1, view 2 and so on, and who is in it."""
        self.detection = -1
        """How long it takes all others to notice a crash or a recovery; -1 if they never do."""

    def down_at(self, time: int) -> list[int]:
        """Who has crashed before this time, and has not recovered by then."""
        last: dict[int, int] = {}
        for crash, process in self.crashes:
            if crash < time:
                last[process] = crash
        recovered = [
            process
            for recovery, process in self.recoveries
            if process in last and last[process] < recovery <= time
        ]
        return sorted(set(last) - set(recovered))

    def next_crash(self, process: int, time: int) -> int:
        """When this process crashes next, from this time on."""
        for crash, crashed in self.crashes:
            if crashed == process and crash >= time:
                return crash
        return NEVER
