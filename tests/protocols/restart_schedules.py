"""Random schedules in which processes crash, also in the middle of a step, and start again.

As in `suspicion_schedules`, failure detectors err. No more than the given number of processes are
down at a time. What is in flight to a process that starts again is lost or arrives. In the end all
are up, unless they are to stay down, and every detector suspects those that are down, and nobody
else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from flexgroup.core.errors import PeerError
from flexgroup.core.message import origin_of
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.worlds.bench import Bench

from .suspicion_schedules import AGREEMENT, ORDER


@dataclass(frozen=True)
class Failures:
    """What may go wrong in a schedule."""

    down: int
    """How many are down at a time, at most."""
    crashes: int
    suspicions: int
    """Wrong ones."""
    stay_down: bool = False
    """Whether those that are down in the end stay down."""


@dataclass
class _Schedule:
    bench: Bench
    random: Random
    fifo: bool
    suspected: set[tuple[int, int]] = field(default_factory=set)
    faulty: set[int] = field(default_factory=set)
    """Who has crashed at some time."""

    def up(self) -> list[int]:
        return [p for p in range(self.bench.size) if p not in self.bench.crashed]

    def crash(self, process: int) -> None:
        self.faulty.add(process)
        self.suspected = {(p, q) for p, q in self.suspected if p != process}

    def recover(self) -> None:
        process = self.random.choice(sorted(self.bench.crashed))
        if self.random.random() < 0.5:
            self.bench.lose(process)
        self.bench.recover(process)

    def to_tell(self) -> list[tuple[int, int]]:
        """Who is wrong about whom."""
        down = self.bench.crashed
        pairs = [(p, q) for p in self.up() for q in range(self.bench.size) if p != q]
        return [(p, q) for p, q in pairs if ((p, q) in self.suspected) != (q in down)]

    def tell(self, p: int, q: int) -> None:
        if (p, q) in self.suspected:
            self.suspected.remove((p, q))
            self.bench.trust(p, q)
        else:
            self.suspected.add((p, q))
            self.bench.suspect(p, q)

    def arrive(self, may_crash: bool) -> bool:
        """Let a packet arrive; whether the process crashed while it handled it."""
        source, target = self.random.choice(list(self.bench.channels))
        waiting = len(self.bench.channels[source, target])
        place = 0 if self.fifo else self.random.randrange(waiting)
        if may_crash and target not in self.bench.crashed:
            self.crash(target)
            self.bench.crash_after(
                target, self.random.randint(1, 4), lambda: self.bench.deliver(source, target, place)
            )
            return True
        self.bench.deliver(source, target, place)
        return False


def restart_schedule(
    stack: str | StackPlan,
    size: int,
    broadcasts: int,
    failures: Failures,
    seed: int,
    fifo: bool = False,
) -> str:
    """What went wrong, if anything, when nothing is in flight and no detector errs any more."""
    random = Random(seed)
    everyone = tuple(range(size))
    plan = parse_stack(stack) if isinstance(stack, str) else stack
    bench = Bench(plan, size, replicas=(everyone,) if plan.needs_replicas else ())
    schedule = _Schedule(bench, random, fifo)
    left = [random.randrange(size + 1) for _ in range(broadcasts)]
    to_crash, to_suspect = failures.crashes, failures.suspicions
    try:
        while True:
            up = schedule.up()
            may_crash = to_crash > 0 and len(bench.crashed) < failures.down
            chance = random.random()
            if left and (chance < 0.1 or not bench.channels):
                origin = left.pop()
                if origin not in bench.crashed:
                    bench.cast(origin, everyone)
            elif may_crash and chance > 0.95 and (random.random() < 0.5 or not bench.channels):
                to_crash -= 1
                crashed = random.choice(up)
                bench.crash(crashed)
                schedule.crash(crashed)
            elif to_suspect and chance > 0.9 and len(up) > 1:
                to_suspect -= 1
                p, q = random.sample(up, 2)
                if (p, q) not in schedule.suspected:
                    schedule.tell(p, q)
            elif (wrong := schedule.to_tell()) and (random.random() < 0.1 or not bench.channels):
                schedule.tell(*random.choice(wrong))
            elif (
                bench.crashed
                and not failures.stay_down
                and (random.random() < 0.05 or not bench.channels)
            ):
                schedule.recover()
            elif bench.channels:
                to_crash -= schedule.arrive(may_crash and random.random() < 0.05)
            elif not left:
                return _broken_promise(schedule)
    except PeerError as error:
        return f"conduct: {error}"


def _broken_promise(schedule: _Schedule) -> str:
    bench = schedule.bench
    orders = [[m.id for m in order] for order in bench.delivered]
    longest = max(orders, key=len)
    if any(len(order) != len(set(order)) for order in orders):
        return "integrity"
    if any(order != longest[: len(order)] for order in orders):
        return ORDER
    if any(orders[p] != longest for p in schedule.up()):
        return AGREEMENT
    # What a client sent is lost if all crash that have heard of it.
    heard = [] if len(schedule.faulty) == bench.size else [*bench.messages]
    for m in [m for m in bench.messages if origin_of(m) < bench.size] + heard:
        if origin_of(m) not in schedule.faulty and m not in longest:
            return "validity"
    return ""
