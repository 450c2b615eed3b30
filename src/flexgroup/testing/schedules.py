"""Random schedules of small systems: every order of arrivals is as good as another.

A *system* is a number of processes and the destination sets of the messages that are
cast. A *schedule* is a seed: in each step one packet in flight is chosen and arrives. A
schedule that breaks a promise becomes a script that anybody can replay.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from flexgroup.core.message import Message
from flexgroup.core.precedence import is_acyclic
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.testing.orders import undelivered, wrongly_delivered
from flexgroup.worlds.bench import Bench, Channel

Destinations = tuple[int, ...]

CYCLE = "cycle"
STUCK = "stuck"
WRONG = "wrong delivery"

_NAMES = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class System:
    """Each message is cast by a client of its own, so any may come first.

    Where only members multicast, they take turns.
    """

    processes: int
    messages: tuple[Destinations, ...]

    def origin(self, number: int, closed: bool) -> int:
        return number % self.processes if closed else self.processes + number


@dataclass(frozen=True)
class Finding:
    """A broken promise, and how to see it again."""

    stack: str
    system: System
    fifo: bool
    kind: str
    arrivals: tuple[tuple[int, int, int], ...]

    def script(self) -> str:
        """Commands for `flexgroup replay`."""
        channels = "fifo" if self.fifo else "reordering"
        closed = parse_stack(self.stack).closed
        size = self.system.processes
        lines = [f"stack {self.stack} over {channels} channels, processes {size}"]
        for number, destinations in enumerate(self.system.messages):
            to = ",".join(map(str, destinations))
            origin = self.system.origin(number, closed)
            lines.append(f"cast {origin} {_NAMES[number]} to={to}")
        for source, target, place in self.arrivals:
            lines.append(f"deliver {source}->{target}" + (f" {place}" if place else ""))
        return "\n".join([*lines, "delivered", "verdict", ""])


@dataclass(frozen=True)
class Schedule:
    """A system of a stack, and the seed of an order of arrivals in it."""

    stack: str
    system: System
    seed: int
    fifo: bool = True

    def keeps_its_promises(self) -> None:
        """Run it to its end; raise an AssertionError with a script if a promise is broken."""
        refute(run_schedule(parse_stack(self.stack), self.system, Random(self.seed), self.fifo))


def refute(finding: Finding | None) -> None:
    """Raise an AssertionError with the script of a finding, if there is one."""
    if finding is None:
        return
    raise AssertionError(
        f"{finding.stack}: {finding.kind} with {finding.system.processes} processes and messages "
        f"to {finding.system.messages}; replay with:\n\n{finding.script()}"
    )


def random_system(random: Random, locality: bool) -> System:
    """3 to 6 processes and 4 to 14 messages; with locality, a few destination sets recur.

    Small sets are more likely than large ones: they leave more processes to be skipped.
    """
    processes = random.randint(3, 6)
    count = random.randint(4, 14)

    def destinations() -> Destinations:
        size = random.choice((1, 2, 2, 3, random.randint(1, processes)))
        return tuple(sorted(random.sample(range(processes), size)))

    if locality:
        pool = [destinations() for _ in range(random.randint(3, 5))]
        if random.random() < 0.3:
            # Two groups whose members alternate: each is between the other's.
            pool[:2] = [tuple(range(first, processes, 2)) for first in (0, 1)] * 3
        return System(processes, tuple(random.choice(pool) for _ in range(count)))
    return System(processes, tuple(destinations() for _ in range(count)))


def run_schedule(plan: StackPlan, system: System, random: Random, fifo: bool) -> Finding | None:
    """One schedule to its end: None if every promise was kept."""
    bench = Bench(plan, system.processes)
    messages: list[Message] = []
    for number, destinations in enumerate(system.messages):
        messages.append(bench.cast(system.origin(number, plan.closed), destinations))
    arrivals: list[tuple[int, int, int]] = []
    channels = bench.channels
    # Some channels are slow for a whole schedule: overtaking needs that more often than an
    # even choice in each step provides it.
    slowness: dict[Channel, float] = {}
    evenness = random.choice((0.0, 0.1, 0.3, 1.0))
    while channels:
        if random.random() < evenness:
            source, target = random.choice(list(channels))
        else:
            for channel in channels:
                if channel not in slowness:
                    slowness[channel] = random.random()
            source, target = min(channels, key=slowness.__getitem__)
        place = 0 if fifo else random.randrange(len(channels[source, target]))
        arrivals.append((source, target, place))
        bench.deliver(source, target, place)
    kind = broken_promise(bench, messages)
    if kind is None:
        return None
    return Finding(plan.name, system, fifo, kind, tuple(arrivals))


def broken_promise(bench: Bench, messages: list[Message]) -> str | None:
    if wrongly_delivered(bench.delivered):
        return WRONG
    if not is_acyclic([[m.id for m in order] for order in bench.delivered]):
        return CYCLE
    if undelivered(bench.delivered, messages):
        return STUCK
    return None


def shrink(plan: StackPlan, finding: Finding, tries: int = 2000) -> Finding:
    """A finding of the same kind with as few messages and arrivals as random tries find."""
    smallest = finding
    shrinking = True
    while shrinking:
        shrinking = False
        for number in range(len(smallest.system.messages)):
            messages = smallest.system.messages
            fewer = System(smallest.system.processes, messages[:number] + messages[number + 1 :])
            found = search(plan, fewer, smallest.kind, smallest.fifo, tries)
            if found is not None:
                smallest, shrinking = found, True
                break
    for seed in range(tries):
        found = run_schedule(plan, smallest.system, Random(seed), smallest.fifo)
        if found and found.kind == smallest.kind and len(found.arrivals) < len(smallest.arrivals):
            smallest = found
    return smallest


def search(plan: StackPlan, system: System, kind: str, fifo: bool, tries: int) -> Finding | None:
    """The first schedule of this system, by seed, that breaks this promise."""
    for seed in range(tries):
        found = run_schedule(plan, system, Random(seed), fifo)
        if found is not None and found.kind == kind:
            return found
    return None
