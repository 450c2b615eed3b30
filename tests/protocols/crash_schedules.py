"""Random schedules with crashes, for broadcasts that survive them.

Members broadcast, packets arrive in any order, processes crash at any moment, and every other
process is told of a crash at a moment of its own: the failure detector is perfect and late. What
a crashed process sent may arrive after the others were told, so it may reach some and not others.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from flexgroup.core.errors import PeerError
from flexgroup.core.message import origin_of
from flexgroup.core.precedence import is_acyclic
from flexgroup.protocols.catalogue import StackPlan, parse_stack
from flexgroup.testing.orders import wrongly_delivered
from flexgroup.worlds.bench import Bench, Channel

NAMES = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Run:
    """What went wrong, if anything, and the commands that show it again."""

    broken: str
    commands: tuple[str, ...]
    delivered: tuple[tuple[int, ...], ...]

    @property
    def script(self) -> str:
        return "\n".join([*self.commands, "delivered", "verdict", ""])


def crash_schedule(
    stack: str | StackPlan,
    size: int,
    broadcasts: int,
    crashes: int,
    seed: int,
    fifo: bool = False,
    ordered: bool = True,
) -> Run:
    """One schedule to its end, when nothing is in flight and all know of all crashes."""
    random = Random(seed)
    plan = parse_stack(stack) if isinstance(stack, str) else stack
    bench = Bench(plan, size)
    channels = "fifo" if fifo else "reordering"
    commands = [f"stack {plan.name} over {channels} channels, processes {size}"]
    left = [random.randrange(size) for _ in range(broadcasts)]
    everyone = tuple(range(size))
    untold: list[tuple[int, int]] = []
    slowness: dict[Channel, float] = {}
    evenness = random.choice((0.0, 0.1, 0.5, 1.0))
    haste = random.choice((0.2, 0.5, 0.95))
    """How likely it is that somebody is told of a crash before anything else happens."""
    to_crash = crashes
    while True:
        chance = random.random()
        if left and (chance < 0.1 or not bench.channels):
            origin = left.pop()
            if origin not in bench.crashed:
                name = NAMES[len(bench.messages)]
                commands.append(f"cast {origin} {name} to={','.join(map(str, everyone))}")
                bench.cast(origin, everyone)
        elif to_crash and bench.messages and chance > 0.95:
            process = random.choice([p for p in everyone if p not in bench.crashed])
            to_crash -= 1
            commands.append(f"crash {process}")
            bench.crash(process)
            untold += [(p, process) for p in everyone if p not in bench.crashed]
        elif untold and (random.random() < haste or not bench.channels):
            process, crashed = untold.pop(random.randrange(len(untold)))
            if process not in bench.crashed:
                commands.append(f"suspect {process} {crashed}")
                bench.suspect(process, crashed)
        elif bench.channels:
            source, target = _channel(bench, slowness, random, evenness)
            length = len(bench.channels[source, target])
            place = 0 if fifo else random.randrange(length)
            commands.append(f"deliver {source}->{target}" + (f" {place}" if place else ""))
            try:
                bench.deliver(source, target, place)
            except PeerError as error:
                return Run(f"conduct: {error}", tuple(commands), ())
        elif not left and not untold:
            break
    delivered = tuple(tuple(m.id for m in order) for order in bench.delivered)
    return Run(broken_promise(bench, ordered), tuple(commands), delivered)


def _channel(
    bench: Bench, slowness: dict[Channel, float], random: Random, evenness: float
) -> Channel:
    if random.random() < evenness:
        return random.choice(list(bench.channels))
    for channel in bench.channels:
        if channel not in slowness:
            slowness[channel] = random.random()
    return min(bench.channels, key=slowness.__getitem__)


def broken_promise(bench: Bench, ordered: bool) -> str:
    """Integrity, validity, agreement and total order among the processes that did not crash."""
    if wrongly_delivered(bench.delivered):
        return "integrity"
    orders = [
        [m.id for m in order]
        for process, order in enumerate(bench.delivered)
        if process not in bench.crashed
    ]
    if ordered and not is_acyclic(orders):
        return "order"
    for order in orders:
        if set(order) != set(orders[0]):
            return "agreement"
    for m in bench.messages:
        if origin_of(m) not in bench.crashed and any(m not in order for order in orders):
            return "validity"
    return ""
