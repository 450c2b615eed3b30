"""Random schedules in which failure detectors err, for broadcasts that survive that.

As in `crash_schedules`, and at any moment any process may suspect any other, wrongly, and trust it
again after a while: in the end every detector suspects those that crashed, and nobody else.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from flexgroup.core.errors import PeerError
from flexgroup.core.message import MessageId, origin_of
from flexgroup.core.precedence import is_acyclic
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.testing.orders import wrongly_delivered
from flexgroup.worlds.bench import Bench

ORDER = "order"
AGREEMENT = "agreement"


@dataclass(frozen=True)
class Errors:
    """What the world may do in a schedule."""

    crashes: int
    suspicions: int
    """Wrong ones."""


def suspicion_schedule(
    stack: str | StackPlan,
    size: int,
    broadcasts: int,
    errors: Errors,
    seed: int,
    fifo: bool = False,
) -> str:
    """What went wrong, if anything, when nothing is in flight and no detector errs any more."""
    random = Random(seed)
    everyone = tuple(range(size))
    plan = parse_stack(stack) if isinstance(stack, str) else stack
    bench = Bench(plan, size, replicas=(everyone,) if plan.needs_replicas else ())
    left = [random.randrange(size) for _ in range(broadcasts)]
    untold: list[tuple[int, int]] = []
    wrong: list[tuple[int, int]] = []
    to_crash, to_suspect = errors.crashes, errors.suspicions
    evenness = random.choice((0.1, 0.5, 1.0))
    patience = random.choice((0.005, 0.02, 0.1))
    """How soon an error is noticed."""
    slow = {(a, b): random.random() for a in everyone for b in everyone}
    while True:
        up = [p for p in everyone if p not in bench.crashed]
        chance = random.random()
        if left and (chance < 0.08 or not bench.channels):
            origin = left.pop()
            if origin in up:
                bench.cast(origin, everyone)
        elif to_crash and bench.messages and chance > 0.97:
            to_crash -= 1
            crashed = random.choice(up)
            bench.crash(crashed)
            untold += [(p, crashed) for p in up if p != crashed]
        elif to_suspect and bench.messages and chance > 0.9:
            to_suspect -= 1
            p, q = random.sample(up, 2)
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
            source, target = (
                random.choice(list(bench.channels))
                if random.random() < evenness
                else min(bench.channels, key=slow.__getitem__)
            )
            place = 0 if fifo else random.randrange(len(bench.channels[source, target]))
            try:
                bench.deliver(source, target, place)
            except PeerError as error:
                return f"conduct: {error}"
        elif not left and not untold and not wrong:
            return broken_promise(bench)


def broken_promise(bench: Bench) -> str:
    """Order and agreement among all processes, the crashed included; validity."""
    if wrongly_delivered(bench.delivered):
        return "integrity"
    orders: list[list[MessageId]] = [[m.id for m in order] for order in bench.delivered]
    correct = [order for p, order in enumerate(orders) if p not in bench.crashed]
    longest = max(orders, key=len)
    if not is_acyclic(orders) or any(order != longest[: len(order)] for order in orders):
        return ORDER
    if any(order != longest for order in correct):
        return AGREEMENT
    for m in bench.messages:
        if origin_of(m) not in bench.crashed and m not in longest:
            return "validity"
    return ""
