"""Random schedules of groups of replicas that crash, start again, and suspect each other.

Members and clients multicast to one group or to several. A process may crash at any moment, also in
the middle of a step; what it sent last may be lost, channel by channel, and so may all that is in
flight to it when it starts again. Failure detectors err. Which packet arrives next is drawn evenly,
or by priorities as in probabilistic concurrency testing. In the end no detector errs, and all are
up that can start again: then everybody who is up has delivered everything. Some members of each
group may lie; then what is promised is promised to the others.

A schedule is fixed by its seed, and writes itself down as a script that anybody can replay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from random import Random

from flexgroup.core.errors import PeerError
from flexgroup.core.message import Message, MessageId, origin_of
from flexgroup.core.precedence import is_acyclic
from flexgroup.core.replicas import Replicas, replicas_of_sizes
from flexgroup.liars.named import KINDS, Liars, in_words
from flexgroup.protocols.catalogue import StackPlan
from flexgroup.testing.orders import wrongly_delivered
from flexgroup.worlds.bench import Bench, Channel

INTEGRITY = "integrity"
ORDER = "order"
AGREEMENT = "agreement"
VALIDITY = "validity"
CONDUCT = "conduct"

MOST_EFFECTS = 4
"""After how many effects of a step a process crashes, at most."""


@dataclass(frozen=True)
class Load:
    """What happens in a schedule."""

    multicasts: int
    crashes: int = 0
    suspicions: int = 0
    """Wrong ones."""
    down: int = 1
    """How many of each group are down at a time, at most."""
    restarts: bool = True
    """Who has crashed starts again; otherwise it stays down, and fewer than half of a group do."""
    depth: int = 0
    """Priorities for bugs that need an order of so many events; 0: any packet may be next."""
    one_group: bool = False
    """A message goes to one group, not to several."""
    liars: int = 0
    """How many members of each group lie, where it has more than three for each."""
    first_may_lie: bool = True
    """The first member of a group may be one of them; the abstract log is there."""
    meets_late: bool = False
    """What others send to who has started again is lost until they have met it: each at a moment
    of its own, and before anything comes to it from there."""


MOST_TIMEOUTS = 100
"""How often timers run out, where some lie and nothing else happens, until that is the end."""


@dataclass(frozen=True)
class Outcome:
    """What went wrong, or nothing, and the schedule."""

    broken: str
    commands: tuple[str, ...]

    def script(self) -> str:
        return "\n".join([*self.commands, "delivered", "verdict", ""])


class ReplicaSchedule:
    """One schedule while it is performed."""

    def __init__(self, plan: StackPlan, sizes: tuple[int, ...], load: Load, seed: int) -> None:
        self.random = Random(seed)
        self.load = load
        self.replicas: Replicas = replicas_of_sizes(sizes)
        self.lying = lying_in(self.replicas, load, seed)
        self.bench = Bench(plan, sum(sizes), replicas=self.replicas, liars=self.lying)
        self.pairs = [(p, q) for group in self.replicas for p in group for q in group if p != q]
        self.suspected: set[tuple[int, int]] = set()
        self.faulty = set(self.bench.liars)
        """Who has crashed at some time, or lies."""
        self.to_crash = load.crashes
        self.to_suspect = load.suspicions if self.pairs else 0
        self.left = [self.random.randrange(sum(sizes) + 2) for _ in range(load.multicasts)]
        self.patience = self.random.choice((0.005, 0.02, 0.1))
        """How soon an error of a detector is noticed, and who is down starts again."""
        self.priorities: dict[Channel, float] = {}
        steps = 40 * load.multicasts * len(sizes)
        self.changes = {self.random.randrange(steps) for _ in range(load.depth - 1)}
        """The steps at which the channel that is first falls behind all others."""
        self.steps = 0
        self.honesty = Random(seed).choice((0.2, 0.5, 0.9))
        """How often a liar does what a correct process would do."""
        self.timeouts_left = MOST_TIMEOUTS if self.lying else 0
        self.unmet: set[Channel] = set()
        """The channels to who has started again from those that have not met it since."""
        named = ",".join(map(str, sizes))
        who = f", liars {' '.join(in_words(self.lying))}" if self.lying else ""
        self.commands = [
            f"stack {plan.name} over fifo channels, processes {sum(sizes)}, replicas {named}{who}"
        ]

    def perform(self) -> Outcome:
        try:
            while self.step():
                self.choose()
        except (PeerError, LookupError) as error:
            return Outcome(f"{CONDUCT}: {error!r}", tuple(self.commands))
        return Outcome(self.broken(), tuple(self.commands))

    def step(self) -> bool:
        """Let one thing happen; whether there is anything left to happen."""
        bench, random = self.bench, self.random
        chance = random.random()
        if self.left and (chance < 0.08 or not bench.channels):
            self.cast(self.left.pop())
        elif self.to_crash and chance > 0.97 and (may := self.may_crash()):
            self.to_crash -= 1
            crashed = random.choice(may)
            self.commands.append(f"crash {crashed}")
            bench.crash(crashed)
            self.note_crash(crashed)
        elif self.to_suspect and chance > 0.94:
            self.to_suspect -= 1
            p, q = random.choice(self.pairs)
            if not {p, q} & bench.crashed and (p, q) not in self.suspected:
                self.tell(p, q)
        elif (
            (self.suspected or bench.crashed)
            and (random.random() < self.patience or not bench.channels)
            and (wrong := self.to_tell())
        ):
            self.tell(*random.choice(wrong))
        elif (
            bench.crashed
            and self.load.restarts
            and (random.random() < self.patience or not bench.channels)
        ):
            self.recover()
        elif self.unmet and random.random() < 0.05:
            self.meet(*random.choice(sorted(self.unmet)))
        elif bench.channels:
            self.arrive()
        elif self.timeouts_left and (timers := self.running()):
            self.timeouts_left -= 1
            process, level, name = random.choice(timers)
            self.commands.append(f"timer {process} {name}")
            bench.end_timer(process, level, name)
        else:
            return bool(self.left)
        return True

    # What may happen.

    def cast(self, origin: int) -> None:
        if origin in self.bench.crashed:
            return
        most = 1 if self.load.one_group else len(self.replicas)
        groups = self.random.sample(self.replicas, self.random.randint(1, most))
        to = tuple(sorted([p for group in groups for p in group]))
        name = f"m{len(self.bench.messages)}"
        self.commands.append(f"cast {origin} {name} to={','.join(map(str, to))}")
        self.bench.cast(origin, to)

    def running(self) -> list[tuple[int, int, str]]:
        return [(p, *timer) for p, timers in sorted(self.bench.timers.items()) for timer in timers]

    def choose(self) -> None:
        for process, chosen in liars_choose(self.bench, self.random, self.honesty):
            self.commands.append(f"choose {process} {chosen}")
            self.bench.choose(process, chosen)

    def arrive(self) -> None:
        source, target = self.next_channel()
        if (target, source) in self.unmet:
            self.meet(target, source)
        if (source, target) in self.unmet:
            self.meet(source, target)
            return
        command = f"deliver {source}->{target}"
        if self.to_crash and self.random.random() < 0.02 and target in self.may_crash():
            self.to_crash -= 1
            effects = self.random.randint(1, MOST_EFFECTS)
            self.commands.append(f"crash-after {effects} {command}")
            self.bench.crash_after(target, effects, partial(self.bench.deliver, source, target))
            self.note_crash(target)
        else:
            self.commands.append(command)
            self.bench.deliver(source, target)

    def next_channel(self) -> Channel:
        if not self.load.depth:
            return self.random.choice(list(self.bench.channels))
        for channel in self.bench.channels:
            if channel not in self.priorities:
                self.priorities[channel] = self.random.random()
        self.steps += 1
        if self.steps in self.changes:
            self.priorities[self.first_channel()] = -float(self.steps)
        return self.first_channel()

    def first_channel(self) -> Channel:
        return max(self.bench.channels, key=self.priorities.__getitem__)

    def may_crash(self) -> list[int]:
        crashed = self.bench.crashed
        may: list[int] = []
        for group in self.replicas:
            most = self.load.down if self.load.restarts else (len(group) - 1) // 2
            if len(crashed.intersection(group)) < most:
                may += [p for p in group if p not in crashed]
        return may

    def note_crash(self, process: int) -> None:
        """Let some of what it sent last be lost, since it had not left."""
        self.faulty.add(process)
        self.suspected = {(p, q) for p, q in self.suspected if p != process}
        for source, target in sorted(self.bench.channels):
            if source == process and self.random.random() < 0.3:
                sent = len(self.bench.channels[source, target])
                for place in range(sent - 1, sent - 1 - self.random.randint(0, sent), -1):
                    self.commands.append(f"drop {source}->{target} {place}".removesuffix(" 0"))
                    self.bench.remove(source, target, place)

    def recover(self) -> None:
        process = self.random.choice(sorted(self.bench.crashed))
        if self.random.random() < 0.6 and any(to == process for _, to in self.bench.channels):
            self.commands.append(f"drop ->{process}")
            self.bench.lose(process)
        self.commands.append(f"recover {process}")
        self.bench.recover(process)
        if self.load.meets_late:
            # It sends to nobody what is meant for who was there before it started.
            self.unmet = {(p, q) for p, q in self.unmet if p != process}
            self.unmet |= {(p, process) for p in range(self.bench.size) if p != process}

    def meet(self, source: int, target: int) -> None:
        """What goes to who has started again is lost, until its sender has met it."""
        self.unmet.discard((source, target))
        for _ in range(len(self.bench.channels.get((source, target), ()))):
            self.commands.append(f"drop {source}->{target}")
            self.bench.remove(source, target)

    def to_tell(self) -> list[tuple[int, int]]:
        """Who is wrong about whom."""
        down = self.bench.crashed
        return [
            (p, q)
            for p, q in self.pairs
            if p not in down and ((p, q) in self.suspected) != (q in down)
        ]

    def tell(self, p: int, q: int) -> None:
        if (p, q) in self.suspected:
            self.suspected.remove((p, q))
            self.commands.append(f"trust {p} {q}")
            self.bench.trust(p, q)
        else:
            self.suspected.add((p, q))
            self.commands.append(f"suspect {p} {q}")
            self.bench.suspect(p, q)

    # What is promised.

    def broken(self) -> str:
        """Order and agreement among all who do not lie; validity, unless all that may have heard of
        it crashed."""
        bench = self.bench
        delivered = [[] if p in bench.liars else order for p, order in enumerate(bench.delivered)]
        if wrongly_delivered(delivered) or any(
            is_forged(bench, m) for one in delivered for m in one
        ):
            return INTEGRITY
        orders: list[list[MessageId]] = [[m.id for m in order] for order in delivered]
        honest = [p for p in range(bench.size) if p not in bench.liars]
        if not is_acyclic(orders) or not all(
            agree(bench, *pair) for pair in combinations(honest, 2)
        ):
            return ORDER
        had = {m for order in orders for m in order}
        for m in bench.messages.values():
            up = [p for p in m.destinations if p not in bench.crashed | bench.liars]
            if origin_of(m.id) in bench.liars or all(m.id in orders[p] for p in up):
                continue
            if m.id in had:
                return AGREEMENT
            if self.must_arrive(m):
                return VALIDITY
        return ""

    def must_arrive(self, m: Message) -> bool:
        """What an origin sends to others, and to the first group only, is lost with that group."""
        origin = origin_of(m.id)
        if origin in self.faulty:
            return False
        asked = [group for group in self.replicas if set(group).issubset(m.destinations)]
        return origin in m.destinations or not any(map(self.faulty.issuperset, asked))


def liars_choose(bench: Bench, random: Random, honesty: float) -> Iterator[tuple[int, int]]:
    """What liars decide, which whoever asks has happen before the next one: so often what a correct
    process would do."""
    for process in sorted(bench.liars):
        host = bench.hosts[process]
        while host.offers:
            honest = random.random() < honesty
            yield process, 0 if honest else random.randrange(host.offers[0].options)


def is_forged(bench: Bench, m: Message) -> bool:
    """Tell whether its origin, which does not lie, has not multicast it."""
    return origin_of(m.id) not in bench.liars and bench.messages.get(m.id) != m


def lying_in(replicas: Replicas, load: Load, seed: int) -> Liars:
    """Who lies, and how: so many of each group that is large enough."""
    random = Random(f"liars {seed}")
    lying: list[tuple[int, str]] = []
    for group in replicas:
        if load.liars and len(group) > 3:
            may = group if load.first_may_lie else group[1:]
            lying += [(p, random.choice(KINDS)) for p in sorted(random.sample(may, load.liars))]
    return tuple(lying)


def agree(bench: Bench, p: int, q: int) -> bool:
    """Tell whether, of what goes to both, one has delivered a prefix of what the other has."""
    of_p = [m.id for m in bench.delivered[p] if q in m.destinations]
    of_q = [m.id for m in bench.delivered[q] if p in m.destinations]
    common = min(len(of_p), len(of_q))
    return of_p[:common] == of_q[:common]


def replica_schedule(plan: StackPlan, sizes: tuple[int, ...], load: Load, seed: int) -> Outcome:
    """Perform a schedule, and judge it when nothing is in flight and no detector errs any more."""
    return ReplicaSchedule(plan, sizes, load, seed).perform()
