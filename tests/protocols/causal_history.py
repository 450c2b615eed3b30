"""Random runs to any destinations, judged by the definition of causal order."""

from __future__ import annotations

from random import Random

from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.worlds.bench import Bench

SIZE = 4
EVERYONE = tuple(range(SIZE))


class Historian:
    """Multicasts and deliveries of a random run to subsets, judged by the definition."""

    def __init__(self, stack: str | StackPlan, seed: int) -> None:
        plan = parse_stack(stack) if isinstance(stack, str) else stack
        self.random = Random(seed)
        self.bench = Bench(plan, SIZE)
        self.past: dict[int, set[int]] = {}
        self.known: list[set[int]] = [set() for _ in range(SIZE)]
        self.seen = [0] * SIZE

    def look(self) -> None:
        """What a process delivers, and all that was before it, is in its past from now on."""
        for process, order in enumerate(self.bench.delivered):
            for m in order[self.seen[process] :]:
                self.known[process] |= {m.id, *self.past[m.id]}
            self.seen[process] = len(order)

    def cast(self) -> None:
        origin = self.random.randrange(SIZE)
        to = tuple(sorted(self.random.sample(EVERYONE, self.random.randint(1, SIZE))))
        identity = self.bench.next_id(origin)
        self.past[identity] = set(self.known[origin])
        self.known[origin].add(identity)
        self.bench.cast(origin, to)
        self.look()

    def move(self) -> None:
        source, target = self.random.choice(sorted(self.bench.channels))
        place = self.random.randrange(len(self.bench.channels[source, target]))
        self.bench.deliver(source, target, place)
        self.look()

    def run(self) -> None:
        for _ in range(12):
            self.cast()
            for _ in range(self.random.randint(0, 5)):
                if self.bench.channels:
                    self.move()
        while self.bench.channels:
            self.move()

    def violations(self) -> list[tuple[int, int, int]]:
        found = []
        for process, order in enumerate(self.bench.delivered):
            had: set[int] = set()
            for m in order:
                for earlier in self.past[m.id] - had:
                    if process in self.bench.messages[earlier].destinations:
                        found.append((process, earlier, m.id))
                had.add(m.id)
        return found
