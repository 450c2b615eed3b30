"""Random schedules of closed groups: members multicast when they like, timers run out, and faults.

The schedules of `flexgroup.testing.schedules` are of clients that all multicast first; here the
casts, too, fall anywhere in the schedule, so that some answer others.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st

from flexgroup.core.message import Message, origin_of
from flexgroup.core.precedence import is_acyclic
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.testing.orders import wrongly_delivered
from flexgroup.worlds.bench import Bench

Destinations = tuple[int, ...]


@dataclass(frozen=True)
class Casts:
    """Who multicasts to whom, in a system of so many processes."""

    processes: int
    casts: tuple[tuple[int, Destinations], ...]
    groups: tuple[Destinations, ...] = ()


@dataclass(frozen=True)
class Faults:
    """How many packets are lost and doubled, at most, and how many processes crash."""

    losses: int = 0
    duplicates: int = 0
    crashes: int = 0


NO_FAULTS = Faults()


@dataclass
class Ended:
    """A schedule that has come to its end, with the script that replays it."""

    bench: Bench
    script: list[str]
    causes: list[tuple[Message, Message]]
    """Pairs of messages of which the first happened before the second, by delivery or by origin."""

    def broken(self) -> list[str]:
        """Which promises of a causal atomic multicast were broken, among those that live."""
        bench = self.bench
        living = [process for process in range(bench.size) if process not in bench.crashed]
        orders = {process: [m.id for m in bench.delivered[process]] for process in living}
        found = []
        if wrongly_delivered(bench.delivered):
            found.append("integrity")
        missing = {
            m: [p for p in m.destinations if p in living and m.id not in orders[p]]
            for m in bench.messages.values()
        }
        if any(missing[m] and origin_of(m.id) in living for m in missing):
            found.append("validity")
        if any(missing[m] and any(m.id in order for order in orders.values()) for m in missing):
            found.append("agreement")
        if not is_acyclic(list(orders.values())):
            found.append("acyclic order")
        if any(
            order.index(first.id) > order.index(second.id)
            for first, second in self.causes
            for order in orders.values()
            if first.id in order and second.id in order
        ):
            found.append("causal order")
        return found

    def refute(self, *promises: str) -> None:
        """None of these is broken."""
        broken = [promise for promise in self.broken() if promise in promises]
        assert not broken, f"{', '.join(broken)}; replay with:\n\n" + "\n".join(self.script)


@st.composite
def systems(draw: st.DrawFn) -> Casts:
    """Up to five processes that multicast to any of each other, up to eight times."""
    processes = draw(st.integers(1, 5))
    members = st.integers(0, processes - 1)
    sets = st.sets(members, min_size=1).map(sorted).map(tuple)
    return Casts(processes, tuple(draw(st.lists(st.tuples(members, sets), max_size=8))))


def random_casts(random: Random, processes: int, count: int) -> Casts:
    """To any sets; every second time within two groups that overlap."""
    if random.random() < 0.5:
        cut = random.randint(1, processes - 1)
        groups = (tuple(range(cut + 1)), tuple(range(max(0, cut - 1), processes)))
        casts = []
        for _ in range(count):
            group = random.choice(groups)
            to = random.sample(group, random.randint(1, len(group)))
            casts.append((random.choice(group), tuple(sorted(to))))
        return Casts(processes, tuple(casts), groups)
    return Casts(
        processes,
        tuple(
            (
                random.randrange(processes),
                tuple(sorted(random.sample(range(processes), random.randint(1, processes)))),
            )
            for _ in range(count)
        ),
    )


def run(
    stack: str | StackPlan,
    casts: Casts,
    random: Random,
    fifo: bool,
    faults: Faults = NO_FAULTS,
    hurry: float = 0.02,
) -> Ended:
    """One schedule to its end: no packet is in flight, no timer is set, all know of crashes.

    `hurry` is how likely timers are to run out while packets are in flight. Protocols that send
    again when a timer runs out never come to an end if that is more likely than an arrival.
    """
    plan = parse_stack(stack) if isinstance(stack, str) else stack
    bench = Bench(plan, casts.processes, casts.groups)
    channels = "fifo" if fifo else "reordering"
    groups = " ".join(",".join(map(str, group)) for group in casts.groups)
    head = f"stack {plan.name} over {channels} channels, processes {casts.processes}"
    ended = Ended(bench, [f"{head}, groups {groups}" if groups else head], [])
    schedule = _Schedule(ended, list(casts.casts), random, fifo, faults)
    while True:
        moves = {
            schedule.cast: 0.2 * bool(schedule.left),
            schedule.end_timer: (hurry if bench.channels else 1.0) * bool(schedule.timers()),
            schedule.arrive: float(bool(bench.channels)),
            schedule.lose: 0.1 * bool(bench.channels and schedule.losses),
            schedule.double: 0.1 * bool(bench.channels and schedule.duplicates),
            schedule.crash: 0.05 * bool(bench.messages and schedule.crashes),
            schedule.suspect: (0.1 if bench.channels else 1.0) * bool(schedule.untold),
        }
        if not bench.channels and not schedule.timers() and not schedule.left:
            moves[schedule.crash] = 0.0
        if not any(moves.values()):
            return ended
        random.choices(list(moves), list(moves.values()))[0]()


class _Schedule:
    """What may happen next, and what of it is left."""

    def __init__(
        self,
        ended: Ended,
        left: list[tuple[int, Destinations]],
        random: Random,
        fifo: bool,
        faults: Faults,
    ) -> None:
        self.ended = ended
        self.bench = ended.bench
        self.left = left
        self.random = random
        self.fifo = fifo
        self.losses = faults.losses
        self.duplicates = faults.duplicates
        self.crashes = faults.crashes
        self.untold: list[tuple[int, int]] = []
        """Who has not heard of whose crash."""

    def tell(self, command: str) -> None:
        self.ended.script.append(command)

    def timers(self) -> list[tuple[int, int, str]]:
        bench = self.bench
        return sorted((p, *timer) for p, running in bench.timers.items() for timer in running)

    def cast(self) -> None:
        origin, to = self.left.pop(0)
        if origin in self.bench.crashed:
            return
        own = [m for m in self.bench.messages.values() if origin_of(m.id) == origin]
        past = [*own, *self.bench.delivered[origin]]
        m = self.bench.cast(origin, to)
        self.ended.causes += [(first, m) for first in past]
        self.tell(f"cast {origin} m{len(self.bench.messages)} to={','.join(map(str, to))}")

    def end_timer(self) -> None:
        process, level, name = self.random.choice(self.timers())
        self.bench.end_timer(process, level, name)
        self.tell(f"timer {process} {name}")

    def packet(self) -> tuple[int, int, int]:
        source, target = self.random.choice(sorted(self.bench.channels))
        length = len(self.bench.channels[source, target])
        return source, target, 0 if self.fifo else self.random.randrange(length)

    def arrive(self) -> None:
        source, target, place = self.packet()
        self.bench.deliver(source, target, place)
        self.tell(f"deliver {source}->{target}" + (f" {place}" if place else ""))

    def lose(self) -> None:
        source, target, place = self.packet()
        self.bench.remove(source, target, place)
        self.losses -= 1
        self.tell(f"drop {source}->{target}" + (f" {place}" if place else ""))

    def double(self) -> None:
        source, target, place = self.packet()
        self.bench.duplicate(source, target, place)
        self.duplicates -= 1
        self.tell(f"duplicate {source}->{target}" + (f" {place}" if place else ""))

    def crash(self) -> None:
        living = [p for p in range(self.bench.size) if p not in self.bench.crashed]
        process = self.random.choice(living)
        self.crashes -= 1
        self.bench.crash(process)
        self.untold += [(other, process) for other in living if other != process]
        self.tell(f"crash {process}")

    def suspect(self) -> None:
        process, crashed = self.untold.pop(self.random.randrange(len(self.untold)))
        if process not in self.bench.crashed:
            self.bench.suspect(process, crashed)
            self.tell(f"suspect {process} {crashed}")
