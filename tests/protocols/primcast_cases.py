"""Schedules that show what some conditions of PrimCast are for, each at its shortest.

In all of them processes 0, 1 and 2 are a group, of which 0 is the primary, and 3 is a group of one.
What a crashed process has sent and a schedule did not let arrive is lost.
"""

from __future__ import annotations

from flexgroup.core.message import Message
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.bench import Bench

EVERYONE = (0, 1, 2, 3)
GROUP = (0, 1, 2)


class Case:
    """A bench of four processes, with the few moves that the schedules are made of."""

    def __init__(self, plan: StackPlan) -> None:
        self.bench = Bench(plan, 4, replicas=replicas_of_sizes((3, 1)))

    def cast(self, origin: int, to: tuple[int, ...]) -> Message:
        return self.bench.cast(origin, to)

    def arrive(self, source: int, target: int, count: int = 99) -> None:
        """Let so many packets arrive, or all that are under way now."""
        for _ in range(min(count, len(self.bench.channels.get((source, target), ())))):
            self.bench.deliver(source, target)

    def crash(self, process: int) -> None:
        self.bench.crash(process)
        for source, target in list(self.bench.channels):
            while source == process and (source, target) in self.bench.channels:
                self.bench.remove(source, target)

    def end(self, crashed: int) -> Bench:
        """All hear of the crash, and everything arrives."""
        for process in GROUP:
            if process != crashed:
                self.bench.suspect(process, crashed)
        while self.bench.channels:
            self.bench.deliver(*next(iter(self.bench.channels)))
        return self.bench


def a_clock_that_only_the_primary_has(plan: StackPlan) -> Bench:
    """The primary alone has heard of the final timestamp, 2, and crashes.

    Its successor gives b the timestamp 2, and of the two b, whose identity is lower, comes first.
    """
    case = Case(plan)
    case.cast(3, (3,))
    case.cast(3, EVERYONE)
    case.arrive(3, 0)
    case.arrive(0, 1, 1)
    case.arrive(1, 0)
    case.cast(1, GROUP)
    case.crash(0)
    case.bench.suspect(1, 0)
    case.arrive(1, 2)
    case.arrive(2, 1)
    return case.end(0)


def an_epoch_that_only_its_primary_enters(plan: StackPlan) -> Bench:
    """1 begins an epoch in which b, which 0 alone has got, does not exist, and crashes.

    The next epoch begins with the T of 0, in which b comes before a.
    """
    case = Case(plan)
    for _ in range(3):
        case.cast(3, (3,))
    case.cast(3, EVERYONE)
    case.arrive(3, 0, 1)
    case.cast(0, GROUP)
    case.arrive(0, 1, 1)
    case.arrive(3, 1)
    case.arrive(3, 2)
    case.bench.suspect(1, 0)
    case.arrive(1, 2)
    case.arrive(2, 1)
    case.crash(1)
    return case.end(1)


def a_proposal_that_is_refused(plan: StackPlan) -> Bench:
    """2 has promised an epoch, refuses b, and hears of a clock that is higher than that of b."""
    case = Case(plan)
    for _ in range(3):
        case.cast(3, (3,))
    case.cast(3, EVERYONE)
    case.arrive(3, 0, 1)
    case.cast(0, GROUP)
    case.arrive(0, 1)
    case.arrive(3, 1)
    case.arrive(1, 0)
    case.bench.suspect(1, 0)
    case.arrive(0, 2, 1)
    case.arrive(3, 2)
    case.arrive(1, 2)
    case.arrive(3, 0)
    case.arrive(0, 2)
    case.crash(1)
    return case.end(1)


def a_promise_that_nobody_else_knows_of(plan: StackPlan) -> Bench:
    """2 has promised 1 an epoch that never begins, and 0 has nothing to say any more."""
    case = Case(plan)
    case.cast(0, EVERYONE)
    case.arrive(0, 2)
    case.bench.suspect(1, 0)
    case.arrive(1, 2)
    case.crash(1)
    return case.end(1)
