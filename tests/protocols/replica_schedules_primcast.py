"""Random schedules of multicasts among groups of replicas, with crashes and detectors that err.

As in `suspicion_schedules`, for messages to one or several groups: fewer than half of each group
crash, suspicions within a group may be wrong for a while, and what a crashed process sent last may
be lost on the way to some.
"""

from __future__ import annotations

from random import Random

from flexgroup.core.errors import PeerError
from flexgroup.core.message import MessageId, origin_of
from flexgroup.core.precedence import is_acyclic
from flexgroup.core.replicas import group_of, replicas_of_sizes
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.testing.orders import wrongly_delivered
from flexgroup.worlds.bench import Bench

from .suspicion_schedules import AGREEMENT, ORDER, Errors

CLIENTS = 2


def replica_schedule(
    stack: str | StackPlan, sizes: tuple[int, ...], casts: int, errors: Errors, seed: int
) -> str:
    """What went wrong, if anything, when nothing is in flight and no detector errs any more."""
    random = Random(seed)
    plan = parse_stack(stack) if isinstance(stack, str) else stack
    replicas = replicas_of_sizes(sizes)
    everyone = [p for group in replicas for p in group]
    bench = Bench(plan, len(everyone), replicas=replicas)
    left = [random.randrange(len(everyone) + CLIENTS) for _ in range(casts)]
    spared = {p for group in replicas for p in random.sample(group, len(group) // 2 + 1)}
    may_crash = [p for p in everyone if p not in spared]
    random.shuffle(may_crash)
    del may_crash[errors.crashes :]
    to_suspect = errors.suspicions if max(sizes) > 2 else 0
    untold: list[tuple[int, int]] = []
    wrong: list[tuple[int, int]] = []
    evenness = random.choice((0.1, 0.5, 1.0))
    patience = random.choice((0.005, 0.02, 0.1))
    """How soon an error is noticed."""
    slow = {(a, b): random.random() for a in range(len(everyone) + CLIENTS) for b in everyone}
    while True:
        up = [p for p in everyone if p not in bench.crashed]
        chance = random.random()
        if left and (chance < 0.08 or not bench.channels):
            origin = left.pop()
            if origin in up or origin >= len(everyone):
                groups = random.sample(replicas, random.randint(1, len(replicas)))
                bench.cast(origin, tuple(sorted(p for group in groups for p in group)))
        elif may_crash and bench.messages and chance > 0.97:
            crashed = may_crash.pop()
            bench.crash(crashed)
            for channel in [c for c in bench.channels if c[0] == crashed]:
                for _ in range(random.choice((0, 0, 1, 2, 9))):
                    if channel in bench.channels:
                        bench.remove(*channel, len(bench.channels[channel]) - 1)
            group = group_of(replicas, crashed)
            untold += [(p, crashed) for p in group if p in up and p != crashed]
        elif to_suspect and bench.messages and chance > 0.9:
            to_suspect -= 1
            p, q = random.sample(random.choice([g for g in replicas if len(g) > 2]), 2)
            if p in up and q in up:
                wrong.append((p, q))
                bench.suspect(p, q)
        elif wrong and (random.random() < patience or not bench.channels):
            p, q = wrong.pop(random.randrange(len(wrong)))
            if p in up and q in up and (p, q) not in wrong:
                bench.trust(p, q)
        elif untold and (random.random() < 0.2 or not bench.channels):
            p, q = untold.pop(random.randrange(len(untold)))
            if p in up:
                bench.suspect(p, q)
        elif bench.channels:
            channel = (
                random.choice(list(bench.channels))
                if random.random() < evenness
                else min(bench.channels, key=slow.__getitem__)
            )
            try:
                bench.deliver(*channel)
            except PeerError as error:
                return f"conduct: {error}"
        elif not left and not untold and not wrong:
            return broken_promise(bench)


def broken_promise(bench: Bench) -> str:
    """Order and agreement among all processes, the crashed included; validity."""
    if wrongly_delivered(bench.delivered):
        return "integrity"
    orders: list[list[MessageId]] = [[m.id for m in order] for order in bench.delivered]
    if not is_acyclic(orders):
        return ORDER
    for group in bench.replicas:
        longest = max([orders[p] for p in group], key=len)
        for p in group:
            if orders[p] != longest[: len(orders[p])]:
                return ORDER
            if p not in bench.crashed and orders[p] != longest:
                return AGREEMENT
    anywhere = {m for order in orders for m in order}
    for m, message in bench.messages.items():
        if m not in anywhere and origin_of(m) in bench.crashed:
            continue
        if any(m not in orders[p] for p in message.destinations if p not in bench.crashed):
            return AGREEMENT if m in anywhere else "validity"
    return ""
