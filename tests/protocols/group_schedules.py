"""Random schedules of several groups of replicas, for multicasts that survive crashes and errors.

As in `suspicion_schedules`; messages go to several groups, clients and members multicast, fewer
than half of each group crash, and of what a process has sent when it crashes, any part may be lost.
"""

from __future__ import annotations

from random import Random

from flexgroup.core.errors import PeerError
from flexgroup.core.message import origin_of
from flexgroup.core.precedence import is_acyclic
from flexgroup.core.replicas import group_of, members_of_groups, replicas_of_sizes
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.testing.orders import wrongly_delivered
from flexgroup.worlds.bench import Bench

from .suspicion_schedules import AGREEMENT, ORDER, Errors

VALIDITY = "validity"


class GroupSchedule:
    """One schedule, to its end."""

    def __init__(
        self,
        stack: str | StackPlan,
        sizes: list[int],
        messages: int,
        errors: Errors,
        seed: int,
        fifo: bool = False,
    ) -> None:
        self.random = random = Random(seed)
        self.replicas = replicas_of_sizes(sizes)
        self.size = sum(sizes)
        plan = parse_stack(stack) if isinstance(stack, str) else stack
        self.bench = Bench(plan, self.size, replicas=self.replicas)
        self.fifo = fifo
        self.left = [self.planned(number) for number in range(messages)]
        self.may_crash = [(len(group) - 1) // 2 for group in self.replicas]
        self.to_crash, self.to_suspect = errors.crashes, errors.suspicions
        self.untold: list[tuple[int, int]] = []
        self.wrong: list[tuple[int, int]] = []
        self.evenness = random.choice((0.1, 0.5, 1.0))
        self.patience = random.choice((0.005, 0.02, 0.1))
        everyone = range(self.size + messages)
        self.slow = {(a, b): random.random() for a in everyone for b in everyone}

    def planned(self, number: int) -> tuple[int, tuple[int, ...]]:
        """An origin, be it a member or a client, and whole groups."""
        count = self.random.randint(1, len(self.replicas))
        groups = sorted(self.random.sample(range(len(self.replicas)), count))
        origin = self.random.choice((self.size + number, self.random.randrange(self.size)))
        return origin, members_of_groups(self.replicas, tuple(groups))

    def run(self) -> str:
        """What went wrong, if anything, when nothing is in flight and no detector errs any more."""
        try:
            while self.happens():
                pass
        except PeerError as error:
            return f"conduct: {error}"
        return self.broken_promise()

    def happens(self) -> bool:
        random, bench = self.random, self.bench
        chance = random.random()
        if self.left and (chance < 0.08 or not bench.channels):
            origin, destinations = self.left.pop()
            if origin not in bench.crashed:
                bench.cast(origin, destinations)
        elif self.to_crash and bench.messages and chance > 0.97:
            self.crash()
        elif self.to_suspect and bench.messages and chance > 0.9:
            self.suspect_wrongly()
        elif self.wrong and (random.random() < self.patience or not bench.channels):
            p, q = self.wrong.pop(random.randrange(len(self.wrong)))
            if bench.crashed.isdisjoint((p, q)) and (p, q) not in self.wrong:
                bench.trust(p, q)
        elif self.untold and (random.random() < 0.2 or not bench.channels):
            p, q = self.untold.pop(random.randrange(len(self.untold)))
            if p not in bench.crashed:
                bench.suspect(p, q)
        elif bench.channels:
            even = random.random() < self.evenness
            channel = (
                random.choice(list(bench.channels))
                if even
                else min(bench.channels, key=self.slow.__getitem__)
            )
            place = 0 if self.fifo else random.randrange(len(bench.channels[channel]))
            bench.deliver(*channel, place)
        else:
            return bool(self.left)
        return True

    def crash(self) -> None:
        """Let a member of a group crash that can bear it, and lose some of what it has sent."""
        random, bench = self.random, self.bench
        self.to_crash -= 1
        up = [p for p in range(self.size) if p not in bench.crashed]
        crashed = random.choice(up)
        number = self.replicas.index(group_of(self.replicas, crashed))
        if not self.may_crash[number]:
            return
        self.may_crash[number] -= 1
        bench.crash(crashed)
        self.untold += [(p, crashed) for p in up if p != crashed]
        share = random.choice((0.0, 0.5, 1.0))
        for source, target in [channel for channel in bench.channels if channel[0] == crashed]:
            for place in reversed(range(len(bench.channels[source, target]))):
                # Over FIFO channels, only what was sent last.
                if random.random() >= share and self.fifo:
                    break
                if random.random() < share:
                    bench.remove(source, target, place)

    def suspect_wrongly(self) -> None:
        self.to_suspect -= 1
        group = self.random.choice(self.replicas)
        up = [p for p in group if p not in self.bench.crashed]
        if len(up) > 1:
            p, q = self.random.sample(up, 2)
            self.wrong.append((p, q))
            self.bench.suspect(p, q)

    def broken_promise(self) -> str:
        """Order and agreement count for those that crashed as well."""
        bench = self.bench
        if wrongly_delivered(bench.delivered):
            return "integrity"
        orders = [[m.id for m in order] for order in bench.delivered]
        if not is_acyclic(orders):
            return ORDER
        for group in self.replicas:
            longest = max([orders[p] for p in group], key=len)
            if any(orders[p] != longest[: len(orders[p])] for p in group):
                return ORDER
        delivered = {m for order in orders for m in order}
        for m in bench.messages.values():
            correct = [p for p in m.destinations if p not in bench.crashed]
            if all(m.id in orders[p] for p in correct):
                continue
            if m.id in delivered:
                return AGREEMENT
            if origin_of(m.id) not in bench.crashed:
                return VALIDITY
        return ""


def group_schedule(
    stack: str | StackPlan,
    sizes: list[int],
    messages: int,
    errors: Errors,
    seed: int,
    fifo: bool = False,
) -> str:
    return GroupSchedule(stack, sizes, messages, errors, seed, fifo).run()
