"""Random schedules of a group of replicas, some of which crash and some of which lie.

Which packet arrives next, when timers run out and what a liar does where it has several ways is
drawn from the seed. In the end messages come sooner than timers run out, though liars go on: then
every correct replica has delivered what correct processes multicast, and all have delivered the
same.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from random import Random

from flexgroup.core.errors import PeerError
from flexgroup.core.message import origin_of
from flexgroup.core.replicas import replicas_of_sizes
from flexgroup.liars.named import KINDS
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.testing.orders import wrongly_delivered
from flexgroup.testing.replica_schedules import (
    CONDUCT,
    INTEGRITY,
    ORDER,
    VALIDITY,
    agree,
    is_forged,
    liars_choose,
)
from flexgroup.worlds.bench import Bench

FORGED = "forged"

MOST_ROUNDS = 40
"""How often, in the end, all timers run out before what is missing is taken for lost."""


@dataclass(frozen=True)
class Load:
    """What happens in a schedule."""

    multicasts: int
    liars: int = 0
    crashes: int = 0
    timers: int = 0
    """How many run out while messages are in flight."""
    fifo: bool = True
    kinds: tuple[str, ...] = KINDS
    """The ways to lie, of which each liar has one."""


class LiarSchedule:
    """One schedule while it is performed."""

    def __init__(self, plan: StackPlan, size: int, load: Load, seed: int) -> None:
        self.random = random = Random(seed)
        self.load = load
        self.everyone = tuple(range(size))
        faulty = random.sample(self.everyone, load.liars + load.crashes)
        if random.random() < 0.5:
            faulty = [0, *[p for p in faulty if p != 0]][: len(faulty)]
        lying = sorted((p, random.choice(load.kinds)) for p in faulty[: load.liars])
        self.to_crash = faulty[load.liars :]
        self.correct = [p for p in self.everyone if p not in faulty]
        self.bench = Bench(plan, size, replicas=replicas_of_sizes([size]), liars=tuple(lying))
        self.honesty = random.choice((0.2, 0.5, 0.9))
        """How often a liar does what a correct process would do."""
        self.left = [random.randrange(size + 2) for _ in range(load.multicasts)]
        self.timers_left = load.timers

    def perform(self) -> str:
        """What went wrong, if anything."""
        try:
            while self.step():
                pass
            for _ in range(MOST_ROUNDS):
                if not self.missing():
                    break
                for process in self.everyone:
                    self.end_timers_of(process)
                while self.bench.channels:
                    self.arrive()
        except PeerError as error:
            return f"{CONDUCT}: {error!r}"
        return self.broken()

    def step(self) -> bool:
        """Let one thing happen; whether there is anything left to happen."""
        random, bench = self.random, self.bench
        chance = random.random()
        if self.left and (chance < 0.08 or not bench.channels):
            origin = self.left.pop()
            if origin not in bench.crashed:
                bench.cast(origin, self.everyone, bytes([len(self.left)]))
                self.choose()
        elif self.to_crash and bench.messages and chance > 0.97:
            bench.crash(self.to_crash.pop())
        elif self.timers_left and chance > 0.9:
            self.timers_left -= 1
            self.end_timers_of(random.choice(sorted(bench.timers) or [0]))
        elif bench.channels:
            self.arrive()
        else:
            return False
        return True

    def arrive(self) -> None:
        source, target = self.random.choice(list(self.bench.channels))
        packets = len(self.bench.channels[source, target])
        place = 0 if self.load.fifo else self.random.randrange(packets)
        self.bench.deliver(source, target, place)
        self.choose()

    def end_timers_of(self, process: int) -> None:
        for level, name in self.bench.timers.get(process, []):
            self.bench.end_timer(process, level, name)
        self.choose()

    def choose(self) -> None:
        for process, chosen in liars_choose(self.bench, self.random, self.honesty):
            self.bench.choose(process, chosen)

    # What is promised.

    def is_correct(self, process: int) -> bool:
        return process >= len(self.everyone) or process in self.correct

    def missing(self) -> bool:
        orders = [{m.id for m in self.bench.delivered[p]} for p in self.correct]
        honest = {m for m in self.bench.messages if self.is_correct(origin_of(m))}
        return any(not honest <= order or order != orders[0] for order in orders)

    def broken(self) -> str:
        delivered = [self.bench.delivered[p] for p in self.correct]
        if wrongly_delivered(delivered):
            return INTEGRITY
        if any(is_forged(self.bench, m) for order in delivered for m in order):
            return FORGED
        if not all(agree(self.bench, p, q) for p, q in combinations(self.correct, 2)):
            return ORDER
        return VALIDITY if self.missing() else ""


def liar_schedule(plan: StackPlan, size: int, load: Load, seed: int) -> str:
    """Perform a schedule, and judge it when nothing happens any more."""
    return LiarSchedule(plan, size, load, seed).perform()
