"""Random schedules of groups of replicas, in which some crash and failure detectors err.

Members and clients multicast to one group or to several. Fewer than half of a group crash, each at
any moment; each of its channels may lose what it sent last, and any of it where channels reorder.
At any moment any member may suspect any other of its group, wrongly, and trust it again after a
while: in the end every detector suspects those that crashed, and nobody else.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from random import Random

from flexgroup.core.errors import PeerError
from flexgroup.core.message import MessageId, origin_of
from flexgroup.core.precedence import is_acyclic
from flexgroup.core.replicas import Replicas, replicas_of_sizes
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.testing.orders import wrongly_delivered
from flexgroup.testing.replica_schedules import agree
from flexgroup.worlds.bench import Bench

from .suspicion_schedules import AGREEMENT, ORDER

VALIDITY = "validity"


@dataclass(frozen=True)
class Load:
    """What happens in a schedule."""

    multicasts: int
    crashes: int = 0
    suspicions: int = 0
    """Wrong ones."""


def replica_schedule(
    stack: str | StackPlan, sizes: tuple[int, ...], load: Load, seed: int, fifo: bool = True
) -> str:
    """What went wrong, if anything, when nothing is in flight and no detector errs any more."""
    return broken_promise(bench_after(stack, sizes, load, seed, fifo))


def bench_after(
    stack: str | StackPlan, sizes: tuple[int, ...], load: Load, seed: int, fifo: bool = True
) -> Bench | str:
    """The processes at the end of a schedule, or what one of them did that none may do."""
    random = Random(seed)
    replicas = replicas_of_sizes(sizes)
    size = sum(sizes)
    bench = Bench(parse_stack(stack) if isinstance(stack, str) else stack, size, replicas=replicas)
    left = [random.randrange(size + 2) for _ in range(load.multicasts)]
    to_crash = sorted_crashes(replicas, load.crashes, random)
    to_suspect = [pair for group in replicas for pair in pairs_of(group)]
    errors = load.suspicions if to_suspect else 0
    untold: list[tuple[int, int]] = []
    wrong: list[tuple[int, int]] = []
    evenness = random.choice((0.1, 0.5, 1.0))
    patience = random.choice((0.005, 0.02, 0.1))
    """How soon an error is noticed."""
    slow = {(a, b): random.random() for a in range(size + 2) for b in range(size)}
    while True:
        chance = random.random()
        if left and (chance < 0.08 or not bench.channels):
            origin = left.pop()
            if origin not in bench.crashed:
                groups = random.sample(replicas, random.randint(1, len(replicas)))
                bench.cast(origin, tuple(sorted(sum(groups, ()))))
        elif to_crash and bench.messages and chance > 0.97:
            crashed = to_crash.pop()
            crash(bench, crashed, random, fifo)
            untold += [(p, crashed) for p, q in to_suspect if q == crashed]
        elif errors and bench.messages and chance > 0.9:
            errors -= 1
            wrong.append(random.choice(to_suspect))
            bench_suspects(bench, *wrong[-1])
        elif wrong and (random.random() < patience or not bench.channels):
            p, q = wrong.pop(random.randrange(len(wrong)))
            if not {p, q} & bench.crashed and (p, q) not in wrong:
                bench.trust(p, q)
        elif untold and (random.random() < 0.2 or not bench.channels):
            bench_suspects(bench, *untold.pop(random.randrange(len(untold))))
        elif bench.channels:
            source, target = (
                random.choice(list(bench.channels))
                if random.random() < evenness
                else min(bench.channels, key=slow.__getitem__)
            )
            place = 0 if fifo else random.randrange(len(bench.channels[source, target]))
            try:
                bench.deliver(source, target, place)
            except (PeerError, LookupError) as error:
                return f"conduct: {error!r}"
        elif not left and not untold and not wrong:
            return bench


def pairs_of(group: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(p, q) for p in group for q in group if p != q]


def sorted_crashes(replicas: Replicas, crashes: int, random: Random) -> list[int]:
    """Processes that crash, the last one first: fewer than half of each group."""
    may = [p for group in replicas for p in random.sample(group, (len(group) - 1) // 2)]
    return random.sample(may, min(crashes, len(may)))


def bench_suspects(bench: Bench, process: int, suspected: int) -> None:
    if process not in bench.crashed:
        bench.suspect(process, suspected)


def crash(bench: Bench, process: int, random: Random, fifo: bool) -> None:
    bench.crash(process)
    for source, target in list(bench.channels):
        if source == process and random.random() < 0.5:
            length = len(bench.channels[source, target])
            count = length - random.randint(0, length)
            lost = range(length)[length - count :] if fifo else random.sample(range(length), count)
            for place in sorted(lost, reverse=True):
                bench.remove(source, target, place)


def broken_promise(bench: Bench | str) -> str:
    """Order and agreement among all processes, the crashed included; validity."""
    if isinstance(bench, str):
        return bench
    if wrongly_delivered(bench.delivered):
        return "integrity"
    orders: list[list[MessageId]] = [[m.id for m in order] for order in bench.delivered]
    pairs = combinations(range(bench.size), 2)
    if not is_acyclic(orders) or not all(agree(bench, p, q) for p, q in pairs):
        return ORDER
    had = {m for order in orders for m in order}
    for m in bench.messages.values():
        up = [p for p in m.destinations if p not in bench.crashed]
        if all(m.id in orders[p] for p in up):
            continue
        if m.id in had:
            return AGREEMENT
        if origin_of(m.id) not in bench.crashed:
            return VALIDITY
    return ""
