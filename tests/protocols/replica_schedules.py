"""Random schedules of groups of replicas: messages to any groups, crashes and wrong suspicions.

As in `suspicion_schedules`, but there are several groups, and clients multicast as well. Fewer than
half of each group crash. In the end every detector suspects those that crashed, and nobody else.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from flexgroup.core.errors import PeerError
from flexgroup.core.message import origin_of
from flexgroup.core.precedence import is_acyclic
from flexgroup.core.replicas import group_of, replicas_of_sizes
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.testing.orders import wrongly_delivered
from flexgroup.worlds.bench import Bench

ACYCLIC = "acyclic order"
PREFIX = "prefix order"
AGREEMENT = "uniform agreement"
VALIDITY = "validity"


@dataclass(frozen=True)
class Plan:
    """How much happens in a schedule."""

    sizes: tuple[int, ...]
    multicasts: int
    crashes: int
    """At most so many, as far as a majority of each group is left."""
    suspicions: int
    """Wrong ones."""


def replica_schedule(stack: StackPlan, plan: Plan, seed: int) -> str:
    """What went wrong, if anything, when nothing is in flight and no detector errs any more."""
    random = Random(seed)
    groups = replicas_of_sizes(plan.sizes)
    size = sum(plan.sizes)
    bench = Bench(stack, size, replicas=groups)
    to_crash = [p for group in groups for p in random.sample(group, (len(group) - 1) // 2)]
    random.shuffle(to_crash)
    del to_crash[plan.crashes :]
    left, to_suspect = plan.multicasts, plan.suspicions
    untold: list[tuple[int, int]] = []
    wrong: list[tuple[int, int]] = []
    evenness = random.choice((0.1, 0.5, 1.0))
    patience = random.choice((0.005, 0.02, 0.1))
    """How soon an error is noticed."""
    slow = {(a, b): random.random() for a in range(size + left) for b in range(size)}
    while True:
        up = [p for p in range(size) if p not in bench.crashed]
        chance = random.random()
        if left and (chance < 0.08 or not bench.channels):
            left -= 1
            to = random.sample(groups, random.randint(1, len(groups)))
            origin = random.choice((size + left, random.choice(up)))
            bench.cast(origin, tuple(sorted(p for group in to for p in group)))
        elif to_crash and bench.messages and chance > 0.97:
            crashed = to_crash.pop()
            bench.crash(crashed)
            untold += [(p, crashed) for p in up if p != crashed]
        elif to_suspect and bench.messages and chance > 0.9:
            to_suspect -= 1
            p = random.choice(up)
            others = [q for q in group_of(groups, p) if q != p and q in up]
            if others:
                wrong.append((p, random.choice(others)))
                bench.suspect(*wrong[-1])
        elif wrong and (random.random() < patience or not bench.channels):
            p, q = wrong.pop(random.randrange(len(wrong)))
            if p in up and q in up and (p, q) not in wrong:
                bench.trust(p, q)
        elif untold and (random.random() < 0.2 or not bench.channels):
            p, q = untold.pop(random.randrange(len(untold)))
            if p in up:
                bench.suspect(p, q)
        elif bench.channels:
            source, target = (
                random.choice(list(bench.channels))
                if random.random() < evenness
                else min(bench.channels, key=slow.__getitem__)
            )
            try:
                bench.deliver(source, target)
            except PeerError as error:
                return f"conduct: {error}"
        elif not left and not untold and not wrong:
            return broken_promise(bench)


def broken_promise(bench: Bench) -> str:
    """Order and agreement among all processes, the crashed included; validity."""
    if wrongly_delivered(bench.delivered):
        return "integrity"
    orders = [[m.id for m in order] for order in bench.delivered]
    if not is_acyclic(orders):
        return ACYCLIC
    for p in range(bench.size):
        for q in range(p):
            one = [m.id for m in bench.delivered[p] if q in m.destinations]
            other = [m.id for m in bench.delivered[q] if p in m.destinations]
            if one[: len(other)] != other[: len(one)]:
                return PREFIX
    somewhere = {m for order in orders for m in order}
    for identity, m in bench.messages.items():
        correct = [p for p in m.destinations if p not in bench.crashed]
        if all(identity in orders[p] for p in correct):
            continue
        if identity in somewhere:
            return AGREEMENT
        if origin_of(identity) not in bench.crashed:
            return VALIDITY
    return ""
