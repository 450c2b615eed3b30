"""Random schedules in which processes crash, also in the middle of a step, and start again.

As in `suspicion_schedules`, failure detectors err. No more than the given number of processes of a
group are down at a time. What is in flight to a process that starts again is lost or arrives. In
the end all are up, unless they are to stay down, and every detector suspects those that are down,
and nobody else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from flexgroup.core.errors import PeerError
from flexgroup.core.message import Message, MessageId, origin_of
from flexgroup.core.precedence import is_acyclic
from flexgroup.core.replicas import Replicas, members_of_groups, replicas_of_sizes
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.testing.replica_schedules import agree
from flexgroup.worlds.bench import Bench

from .suspicion_schedules import AGREEMENT, ORDER


@dataclass(frozen=True)
class Failures:
    """What may go wrong in a schedule."""

    down: int
    """How many of each group are down at a time, at most."""
    crashes: int
    suspicions: int
    """Wrong ones."""
    stay_down: bool = False
    """Whether those that are down in the end stay down."""


@dataclass
class _Schedule:
    bench: Bench
    groups: Replicas
    random: Random
    fifo: bool
    suspected: set[tuple[int, int]] = field(default_factory=set)
    faulty: set[int] = field(default_factory=set)
    """Who has crashed at some time."""

    def up(self) -> list[int]:
        return [p for p in range(self.bench.size) if p not in self.bench.crashed]

    def may_crash(self, down: int) -> list[int]:
        """Who is up, in groups of which fewer are down."""
        crashed = self.bench.crashed
        groups = [group for group in self.groups if len(crashed.intersection(group)) < down]
        return [p for group in groups for p in group if p not in crashed]

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

    def arrive(self, may_crash: list[int]) -> bool:
        """Let a packet arrive; whether the process crashed while it handled it."""
        source, target = self.random.choice(list(self.bench.channels))
        waiting = len(self.bench.channels[source, target])
        place = 0 if self.fifo else self.random.randrange(waiting)
        if target in may_crash:
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
    return group_restart_schedule(stack, (size,), broadcasts, failures, seed, fifo)


def group_restart_schedule(
    stack: str | StackPlan,
    sizes: tuple[int, ...],
    multicasts: int,
    failures: Failures,
    seed: int,
    fifo: bool = False,
) -> str:
    """The same with groups of these sizes, and multicasts to one or to several of them."""
    random = Random(seed)
    groups = replicas_of_sizes(sizes)
    size = sum(sizes)
    plan = parse_stack(stack) if isinstance(stack, str) else stack
    bench = Bench(plan, size, replicas=groups if plan.needs_replicas else ())
    schedule = _Schedule(bench, groups, random, fifo)
    left = [random.randrange(size + 1) for _ in range(multicasts)]
    to_crash, to_suspect = failures.crashes, failures.suspicions
    try:
        while True:
            up = schedule.up()
            may_crash = schedule.may_crash(failures.down) if to_crash > 0 else []
            chance = random.random()
            if left and (chance < 0.1 or not bench.channels):
                origin = left.pop()
                if origin not in bench.crashed:
                    bench.cast(origin, _destinations(groups, random))
            elif may_crash and chance > 0.95 and (random.random() < 0.5 or not bench.channels):
                to_crash -= 1
                crashed = random.choice(may_crash)
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
                is_to_crash = bool(may_crash) and random.random() < 0.05
                to_crash -= schedule.arrive(may_crash if is_to_crash else [])
            elif not left:
                return _broken_promise(schedule)
    except PeerError as error:
        return f"conduct: {error}"


def _destinations(groups: Replicas, random: Random) -> tuple[int, ...]:
    if len(groups) == 1:
        return groups[0]
    chosen = random.sample(range(len(groups)), random.randint(1, len(groups)))
    return members_of_groups(groups, tuple(sorted(chosen)))


def _broken_promise(schedule: _Schedule) -> str:
    bench = schedule.bench
    orders: list[list[MessageId]] = [[m.id for m in order] for order in bench.delivered]
    if any(len(order) != len(set(order)) for order in orders):
        return "integrity"
    pairs = [(p, q) for p in range(bench.size) for q in range(p)]
    if not is_acyclic(orders) or not all(agree(bench, p, q) for p, q in pairs):
        return ORDER
    had = {m for order in orders for m in order}
    for m in bench.messages.values():
        if all(m.id in orders[p] for p in schedule.up() if p in m.destinations):
            continue
        if m.id in had:
            return AGREEMENT
        if origin_of(m.id) not in schedule.faulty and _is_heard(schedule, m):
            return "validity"
    return ""


def _is_heard(schedule: _Schedule, m: Message) -> bool:
    """What comes from outside a group is lost if all crash that have heard of it."""
    if origin_of(m.id) in m.destinations:
        return True
    groups = [group for group in schedule.groups if group[0] in m.destinations]
    return all(set(group) - schedule.faulty for group in groups)
